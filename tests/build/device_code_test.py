"""device_code_test.py: properties of the compiled kernels: no local memory, launchable blocks, rows stored
16 bytes at a time."""

import os
import re
from pathlib import Path

import pytest

from build import device_code

OBJECTS = device_code.objects(os.environ["WD_BUILD_DIR"])
pytestmark = [
    pytest.mark.skipif(not OBJECTS, reason="this build has no CUDA"),
    pytest.mark.skipif(device_code.find_tool() is None, reason="there is no cuobjdump"),
]
MOST_THREADS = 1024  # per block that has one replica to itself (include/wd/detail/cuda_executor.cuh)


def every_kernel():
    return [kernel for path in OBJECTS for kernel in device_code.kernels(path)]


def test_all_objects_hold_kernels():
    assert len(OBJECTS) >= 14
    assert all(device_code.kernels(path) for path in OBJECTS)


def test_no_kernel_uses_local_memory():
    assert {kernel.name: kernel.stack for kernel in every_kernel() if kernel.stack > 0} == {}


def test_the_largest_blocks_have_registers():
    of_blocks = [kernel for kernel in every_kernel() if re.fullmatch(r"step_replicas<\w+, 0, \w+>", kernel.name)]
    assert len(of_blocks) >= 5
    assert {kernel.name: kernel.registers for kernel in of_blocks if kernel.registers * MOST_THREADS > 65536} == {}


# Kernels that read flags or masks, or write them. All other data is moved by words at least. A block that stages
# rows copies the masks that do not begin at a word.
STAGED = {f"staged_{what}<wd::{distribution}>" for what in ("loss", "sample")
          for distribution in ("CategoricalOf<wd::OneLane> ", "Gaussian", "Greedy", "Gsde", "Point", "SquashedGaussian", "StateGaussian")}
READ_BYTES = {"admit_replica", "append_word", "attention_weights_of", "backward_sequences<wd::GruCell>", "backward_sequences<wd::LstmCell>", "choices_loss_row", "choices_target_row", "column_moments_of", "count_units_of", "decide", "draw_opponent", "draw_unit", "find_choice_of_row", "follow_episodes", "forward_sequences<wd::GruCell>", "forward_sequences<wd::LstmCell>", "keep_row", "gather_word", "gather_word_of", "loss_row", "mean_reward",
              "normalize_target", "place_units_of", "scatter_row", "steps_back_of_unit", "steps_of_unit", "teaching_row", "warp_rows<&loss_of_warp, wd::LossArgs>", "warp_rows<&sample_of_warp, wd::SampleArgs>",
              "pool_backward_of", "pool_piece", "prioritize_replica", "random_action_row", "sum_chunk<Moments>", "reward_sums_column", "moments_of_row", "returns_column",
              "sum_only_chunk<(Into)0, Moments>", "sample_row", "take_action", "td_loss_item", "td_loss_row", "td_target_row", "team_loss_row", "team_reward_row", "team_target_row", "team_value_row", "things_row_backward", "transitions_of_row"}
WRITE_BYTES = {"append_word", "decide", "draw_opponent", "draw_unit", "find_choice_of_row", "gather_word", "gather_word_of", "keep_row", "returns_column", "scatter_row", "team_reward_row", "thing_of", "transitions_of_row"}


def move_bytes(instructions):
    """The kernels with such instructions for single bytes, without those of environments, whose flags are bytes."""
    found = set()
    for path in OBJECTS:
        code = device_code.sass(path)
        found |= {kernel.name for kernel in device_code.kernels(path) if re.search(rf"\b(?:{instructions})\.(?:\w+\.)*[US]8\b", code[kernel.symbol])}
    return {name for name in found if not name.startswith("step_replicas")}


def test_words_are_not_moved_byte_by_byte():
    """nvcc takes the operands of memcpy() as unaligned: of a float it makes four loads."""
    assert move_bytes("LDG|LDS|LD") <= READ_BYTES | STAGED
    assert move_bytes("STG|STS|ST") <= WRITE_BYTES | STAGED


def test_rows_of_a_block_are_stored_16_bytes_at_a_time():
    """Checks tag_continuous: in PTX, float4 stores can only come from rows, because the state is copied as
    integers; the machine code keeps their width."""
    (path,) = [path for path in OBJECTS if path.name == "tag_continuous.env.cu.o"]
    (kernel,) = [kernel for kernel in device_code.kernels(path) if kernel.name == "step_replicas<TagContinuous, 0, true>"]
    rows = len(re.findall(r"\bst\.global\.v4\.f32\b", device_code.ptx(path)[kernel.symbol]))
    state = len(re.findall(r"\bst\.global\.v4\.[ub]32\b", device_code.ptx(path)[kernel.symbol]))
    stores = len(re.findall(r"\bSTG\.E(?:\.\w+)*\.128\b", device_code.sass(path)[kernel.symbol]))
    assert rows >= 2, "full observation and nearest neighbours"
    assert stores >= rows + (1 if state else 0)


def test_a_replica_in_shared_memory_is_read_there():
    """Loads from an address that could be in any memory take twice the registers and several more instructions."""
    staged = [kernel for kernel in every_kernel() if re.fullmatch(r"step_replicas<\w+, \d+, true>", kernel.name)]
    assert len(staged) >= 5
    for path in {kernel.file for kernel in staged}:
        code = device_code.sass(path)
        for kernel in (kernel for kernel in staged if kernel.file == path):
            assert not re.search(r"\bLD\.E\b", code[kernel.symbol]), kernel.name
