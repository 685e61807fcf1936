// recording.h: transitions in files, from which policies learn without playing: `wdtrain record` writes them,
// and a replay memory (wd/replay.h) is filled with them.
//
//   FOLDER/POLICY/part-00000.safetensors, part-00001.safetensors, ...
//
// A part holds some steps of all replicas: tensors [replicas, steps, ...], so the steps of a replica follow
// one another, and go on in the next part, also in the middle of an episode. A step has the same meaning as
// in a trajectory (wd/trajectory.h): what the agents observed, what they did, and what followed. So the
// observation after a step is that of the next one, and a step that only resets (reset_step) has the first of
// an episode behind it, as in Trajectory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/safetensors.h"
#include "wd/trajectory.h"

namespace wd {

// What the transitions of a policy must have in common with the training that learns from them, in words.
TensorMetadata recording_metadata(const std::string& environment, const Spec& spec,
                                  const PolicyLayout& policy);

// Writes the transitions of one policy, part by part.
class RecordingWriter {
 public:
  // Keeps a reference to the buffers. Makes the folder. steps: of each replica, in all parts. part_bytes: of
  // a part, which has one step at least. Throws UsageError if the folder has files already.
  RecordingWriter(std::filesystem::path folder, const PolicyBuffers& buffers, TensorMetadata metadata,
                  std::int64_t steps, std::int64_t part_bytes);
  // Appends the first `steps` rows of the buffers. Synchronizes on CUDA.
  void append(std::int64_t steps);
  std::int64_t parts() const { return parts_; }

 private:
  void write_part();

  std::filesystem::path folder_;
  const PolicyBuffers& buffers_;
  TensorMetadata metadata_;
  std::int64_t steps_, part_steps_;
  std::int64_t written_ = 0, held_steps_ = 0, parts_ = 0;
  struct Held {
    const BufferField* field;
    at::Tensor rows;  // [E, steps of a part, ...]
  };
  std::vector<Held> held_;
};

// The transitions of one policy in files, whose headers have been checked against each other. Before the
// content of strangers' files is read, check() must accept it.
class Recording {
 public:
  // Throws UsageError that says which file is missing, damaged or of another recording, and what to do.
  explicit Recording(std::filesystem::path folder);
  ~Recording();

  std::int64_t replicas() const { return replicas_; }
  std::int64_t steps() const { return steps_; }  // of each replica
  std::int64_t entries() const { return replicas_ * steps_; }
  std::int64_t parts() const { return static_cast<std::int64_t>(parts_.size()); }

  // How many entries each of so many replicas gets: the recorded replicas, one after another, are cut into
  // equal pieces, and what is left over, fewer entries than replicas, is not used.
  std::int64_t share(std::int64_t num_envs) const { return entries() / num_envs; }

  // Reads everything, and throws UsageError that names file, tensor and place if the transitions are of
  // another environment, other roles or other spaces; if a tensor has another type or shape than they imply;
  // if an action is none of the choices, not legal or out of bounds; if a number is not finite; if flags
  // contradict each other; or if there is no transition at all (check.cpp).
  void check(const std::string& environment, const Spec& spec, const PolicyLayout& policy) const;
  // As far as the headers of the files tell it.
  void check_headers(const std::string& environment, const Spec& spec, const PolicyLayout& policy) const;

  // Reads a tensor's entries [first, first + n) of the recorded replicas, one after another, in pieces: `use`
  // gets the place of a piece, from 0, and a host tensor [rows, ...], which is valid during the call. Throws
  // std::runtime_error naming the file.
  void read(const std::string& field, std::int64_t first, std::int64_t n,
            const std::function<void(std::int64_t at, const at::Tensor& rows)>& use) const;

 private:
  struct Part {
    std::filesystem::path path;
    std::unique_ptr<SafetensorsReader> file;
    std::int64_t first = 0, steps = 0;
  };
  // Steps [first, first + n) of a part's replicas, one after another.
  at::Tensor rows(const Part& part, const std::string& field, std::int64_t first, std::int64_t n) const;
  void check_entries(const PolicyLayout& policy) const;
  [[noreturn]] void fail(const std::filesystem::path& file, const std::string& reason) const;

  std::filesystem::path folder_;
  std::int64_t replicas_ = 0, steps_ = 0;
  std::vector<Part> parts_;
};

// The flags (kernels/replay.h) of these entries, [n, A] uint8 on the host. Within them the last step of a
// recorded replica is no transition, since the observation behind it is not there; the step before it ends
// like a truncated one.
at::Tensor recorded_flags(const Recording& recording, std::int64_t first, std::int64_t n);

}  // namespace wd
