"""The same as agreement_test.py for 2,000 configurations, some of them of two or three workers."""

from fuzz.agreement import disagreements


def test_printing_and_training_agree(tmp_path):
    codes, found = disagreements(2000, seed=1, folder=tmp_path)
    assert not found, "\n\n".join(found)
    assert codes[0, 0] > 1000 and codes[2, 2] > 200, codes
