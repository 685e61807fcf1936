"""recording.py: the updates that record_test.cpp and q_record_test.cpp record, as torch tensors."""

import itertools
import os
import subprocess
from pathlib import Path

from safetensors import safe_open


class Recording:
    """Tensors of one update, with floats converted to double; the settings in `words` are text, a list of numbers for
    heads, and the others are numbers."""

    def __init__(self, path, words):
        with safe_open(path, "pt") as file:
            self.tensors = {name: file.get_tensor(name) for name in file.keys()}
            settings = file.metadata()
        self.heads = [int(n) for n in settings.pop("heads").split()]
        for name, text in settings.items():
            setattr(self, name, text if name in words else float(text))

    def __getitem__(self, name):
        tensor = self.tensors[name]
        return tensor.double() if tensor.is_floating_point() else tensor

    def prefixed(self, prefix):
        return {name.removeprefix(prefix): self[name] for name in self.tensors if name.startswith(prefix)}

    def orders(self):
        """Rows of the minibatches, in the order in which they were learned from."""
        return [rows for epoch in self.epochs() for rows in epoch]

    def epochs(self):
        """The same by epoch."""
        names = sorted((n for n in self.tensors if n.startswith("order.")), key=lambda n: [int(k) for k in n.split(".")[1:]])
        return [[self[name] for name in of_epoch] for _, of_epoch in itertools.groupby(names, lambda n: n.split(".")[1])]


def recorded(source, folder, names):
    """Runs the recording test of this source and returns its files by name."""
    program = Path(os.environ["WD_BUILD_DIR"]) / "tests" / "test.algorithm"
    subprocess.run([program, f"--file=algorithm/{source}"], env=os.environ | {"WD_RECORD_DIR": str(folder)}, check=True, stdout=subprocess.DEVNULL)
    assert sorted(file.stem for file in folder.iterdir()) == names
    return {name: folder / f"{name}.safetensors" for name in names}
