"""What --print_config refuses, training refuses, and nothing else: a sample. agreement_slow_test.py has many more."""

from fuzz.agreement import disagreements


def test_printing_and_training_agree(tmp_path):
    codes, found = disagreements(16, seed=0, folder=tmp_path, workers=False)
    assert not found, "\n\n".join(found)
    assert codes[0, 0] > 5 and codes[2, 2] > 0, codes
