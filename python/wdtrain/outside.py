"""Names of environments that a function makes, for the program wdtrain."""

import hashlib
import pathlib
import pickle
import re
import sys

from wdtrain.files import UsageError

FOLDER = pathlib.Path("runs", ".environments")


def environment_name(function):
    """The name by which processes of wdtrain find this function: MODULE:FUNCTION if they can import it.

    Otherwise (a function of a script or a notebook, a lambda, an object) it is pickled to runs/.environments/NAME-DIGEST.pkl in the
    working folder, and the name is pickle:PATH, of the whole path: a run goes on, and is evaluated, in any folder while that file stays there.

    Raises UsageError if the function cannot be pickled.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    if module not in (None, "__main__", "builtins") and "<" not in name and _is_found(module, name, function):
        return f"{module}:{name}"
    content = _pickled(function)
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", getattr(function, "__qualname__", type(function).__qualname__).replace("<locals>.", "")).strip("_")
    path = FOLDER.absolute() / f"{name[-60:]}-{hashlib.sha256(content).hexdigest()[:16]}.pkl"
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"pickle:{path}"


def _is_found(module, name, function):
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function


def _pickled(function):
    try:
        import cloudpickle  # gymnasium needs it, too
    except ImportError:
        cloudpickle = pickle
    try:
        return cloudpickle.dumps(function)
    except Exception as error:  # whatever an object's __reduce__ raises
        raise UsageError(
            f"{function!r} cannot be pickled for the processes that step environments: {error}. Make what it holds (a file, a lock, a GPU's "
            "memory) inside of the function, or write the function into a module: env='MODULE:FUNCTION'"
        ) from error
