"""attend/_abi.py against the header: sizes, offsets and enumerators by a compiled program, prototypes by their text."""

import ctypes
import inspect
import os
import re
import shutil
import subprocess

import pytest
from attend import _abi
from conftest import TOP

HEADER = (TOP / "include/attend.h").read_text()
STRUCTS = [s for _, s in inspect.getmembers(_abi, inspect.isclass) if issubclass(s, ctypes.Structure) and s is not ctypes.Structure]
CONSTANTS = [name for name in vars(_abi) if re.fullmatch(r"AT_[A-Z_]+", name)]


def fields_of_header(struct: str) -> list[str]:
    """The names of a struct's fields, in order."""
    body = re.search(rf"typedef struct {struct} {{(.*?)^}} {struct};", HEADER, re.S | re.M).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    declarators = [d for line in body.split(";") if line.strip() for d in line.split(",")]
    return [re.search(r"(\w+)\s*(\[[^]]*\]\s*)?$", d.strip()).group(1) for d in declarators]


@pytest.fixture(scope="module")
def layout(tmp_path_factory) -> dict[str, int]:
    """What a C compiler says: NAME for a size or an enumerator, STRUCT.FIELD for an offset, STRUCT.FIELD: for a size."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("there is no C compiler to ask for the layout of structs")
    folder = tmp_path_factory.mktemp("layout")
    asked = [f'printf("{name} %d\\n", (int){name});' for name in CONSTANTS]
    for struct in STRUCTS:
        c = struct.__name__
        asked.append(f'printf("{c} %zu\\n", sizeof({c}));')
        for field in fields_of_header(c):
            asked.append(f'printf("{c}.{field} %zu\\n{c}.{field}: %zu\\n", offsetof({c}, {field}), sizeof((({c} *)0)->{field}));')
    (folder / "layout.c").write_text("#include <attend.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(asked) + "\n}\n")
    subprocess.run([compiler, f"-I{TOP}/include", "layout.c", "-o", "layout"], cwd=folder, check=True)
    printed = subprocess.run(["./layout"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in (line.split() for line in printed.splitlines())}


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)
def test_struct(struct, layout):
    c = struct.__name__
    assert [name for name, _ in struct._fields_] == fields_of_header(c)
    assert ctypes.sizeof(struct) == layout[c]
    for name, _ in struct._fields_:
        field = getattr(struct, name)
        assert (field.offset, field.size) == (layout[f"{c}.{name}"], layout[f"{c}.{name}:"]), f"{c}.{name}"


def test_constants(layout):
    assert len(CONSTANTS) >= 13
    for name in CONSTANTS:
        assert getattr(_abi, name) == layout[name], name


NUMBERS = {
    "bool": ctypes.c_bool, "int": ctypes.c_int, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double, "size_t": ctypes.c_size_t, "void": None, "at_training_part": ctypes.c_int,
    "at_line": _abi.at_line,
}  # fmt: skip


def fits(declared: str, given) -> bool:
    """Whether a ctypes type can stand for a type of C: numbers exactly, pointers to a struct by the struct or opaque."""
    base = re.sub(r"\b(const|volatile)\b", "", declared).strip()
    if base in ("at_on_result *", "at_train_listener *"):
        return given is getattr(_abi, base[:-2])
    if base.endswith("*"):
        pointee = base.rstrip("* ")
        if given is ctypes.c_void_p:
            return not hasattr(_abi, pointee)
        if given is ctypes.c_char_p:
            return base == "char *"
        while issubclass(given, ctypes._Pointer):
            given = given._type_
        return given.__name__ == pointee or NUMBERS.get(pointee) is given or (pointee, given) == ("int32_t", ctypes.c_int32)
    return base in NUMBERS and NUMBERS[base] is given


@pytest.mark.parametrize("name", _abi.PROTOTYPES)
def test_prototype(name):
    result, arguments = _abi.PROTOTYPES[name]
    plain = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    found = re.search(rf"^AT_API ([\w *]+?){name}\(([^)]*)\);", plain, re.M)
    assert found, f"attend.h has no {name}"
    assert fits(found.group(1).strip(), result), f"{name} returns {found.group(1)}"
    declared = [a.strip() for a in found.group(2).split(",") if a.strip() not in ("void", "")]
    # "const at_line *const *references" without its name
    declared = [re.sub(r"\w+$", "", a).strip() for a in declared]
    assert len(declared) == len(arguments)
    for c, given in zip(declared, arguments):
        assert fits(c, given), f"{name}: {c} is not {given}"


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(_abi, "INTERFACE", "0.0")
    monkeypatch.setenv("ATTEND_LIBRARY", _abi.library._name)
    with pytest.raises(ImportError, match="this package is for attend 0.0"):
        _abi._load()


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setenv("ATTEND_LIBRARY", "/no/such/libattend.so")
    with pytest.raises(ImportError, match="ATTEND_LIBRARY.*no/such"):
        _abi._load()
