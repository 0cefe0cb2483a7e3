"""Skops files that a forger would write: any callable, through every node that skops can build."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

import numpy as np

Node = dict[str, Any]
_ids = itertools.count(1)


def node(loader: str, name: str, **more: Any) -> Node:
    """Return a node of ``loader`` for the object ``name``, such as "builtins.exec"."""
    module, _, last = name.rpartition(".")
    head = {"__module__": module, "__class__": last, "__loader__": loader, "__id__": next(_ids)}
    return head | more


def value(of: Any) -> Node:
    return node("JsonNode", "builtins.str", content=json.dumps(of), is_json=True)


def values(loader: str, name: str, items: list[Any]) -> Node:
    return node(loader, name, content=[value(item) for item in items])


def args(items: list[Any]) -> Node:
    return values("TupleNode", "builtins.tuple", items)


def named(items: dict[str, Any]) -> Node:
    types = node(
        "ListNode", "builtins.list", content=[node("TypeNode", "builtins.str")] * len(items)
    )
    content = {key: value(item) for key, item in items.items()}
    return node("DictNode", "builtins.dict", content=content, key_types=types)


def packed(root: Node, *, protocol: int = 2, files: dict[str, bytes] | None = None) -> bytes:
    """Return the file."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in (files or {}).items():
            archive.writestr(name, content)
        archive.writestr("schema.json", json.dumps(root | {"protocol": protocol}))
    return buffer.getvalue()


def array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(2))
    return buffer.getvalue()


def matrix() -> bytes:
    from scipy import sparse

    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.csr_matrix(np.eye(2)))
    return buffer.getvalue()


def files_for(name: str, given: list[Any]) -> Iterator[tuple[str, bytes]]:
    """Yield a label and a file for every node type through which ``name(*given)`` could be had."""
    own = [node("TypeNode", name)]
    one_type = node("ListNode", "builtins.list", content=own)
    text = str(given[0]) if given else "x"
    function = node("FunctionNode", name)
    estimator = "sklearn.linear_model._logistic.LogisticRegression"
    empty = args([])
    member = {
        "content": function,
        "reduce": node("ConstructorFromReduceNode", name, content=args(given)),
    }
    roots: dict[str, Node] = {
        "reduce": member["reduce"],
        "reduce in an estimator": node(
            "ObjectNode",
            estimator,
            content=node(
                "DictNode",
                "builtins.dict",
                content={"classes_": member["reduce"]},
                key_types=node(
                    "ListNode", "builtins.list", content=[node("TypeNode", "builtins.str")]
                ),
            ),
        ),
        "list": values("ListNode", name, given),
        "set": values("SetNode", name, given),
        "tuple": values("TupleNode", name, given),
        "dict": node(
            "DictNode",
            name,
            content={},
            key_types=node("ListNode", "builtins.list", content=[]),
        ),
        "key of a dict": node(
            "DictNode", "builtins.dict", content={text: value(0)}, key_types=one_type
        ),
        "default of a dict": node(
            "DefaultDictNode",
            "collections.defaultdict",
            content={"main": named({}), "default_factory": function},
        ),
        "array": node("NdArrayNode", name, type="numpy", file="a.npy"),
        "masked": node(
            "MaskedArrayNode",
            name,
            content={"data": member["reduce"], "mask": value(False)},
        ),
        "dtype": node("DTypeNode", "numpy.dtype", content=member["reduce"]),
        "random state": node("RandomStateNode", name, content=named({})),
        "generator": node(
            "RandomGeneratorNode",
            name,
            content={
                "bit_generator": named({"bit_generator": "PCG64"}),
                "seed_seq": named({"entropy": 1}),
            },
        ),
        "bit generator": node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={
                "bit_generator": named({"bit_generator": name.rpartition(".")[2]}),
                "seed_seq": named({"entropy": 1}),
            },
        ),
        "sparse": node(
            "SparseMatrixNode", "scipy.sparse._matrix.spmatrix", type="scipy", file="m.npz"
        ),
        "sparse of its class": node("SparseMatrixNode", name, type="scipy", file="m.npz"),
        "function": function,
        "type": own[0],
        "object": node("ObjectNode", name, content=named({"x": 1})),
        "partial": node(
            "PartialNode",
            "functools.partial",
            content={
                "func": function,
                "args": args(given),
                "kwds": named({}),
                "namespace": named({}),
            },
        ),
        "method": node(
            "MethodNode", name, content={"func": "__call__", "obj": node("ObjectNode", name)}
        ),
        "operator": node(
            "OperatorFuncNode",
            "operator.call",
            attrs=node("TupleNode", "builtins.tuple", content=[function, *map(value, given)]),
        ),
        "loss": node("LossNode", name, content=named({}), __reduce__={"args": args(given)}),
        "tree": node("TreeNode", name, content=named({}), __reduce__={"args": args(given)}),
        "forest": node("QuantileForestNode", name, content=named({}), __reduce__={"args": empty}),
        "unknown node": node("MadeUpNode", name, content=args(given)),
    }
    for label, root in roots.items():
        yield label, packed(root, files={"a.npy": array(), "m.npz": matrix()})
    module, _, last = name.rpartition(".")
    old = node("FunctionNode", "builtins.str", content={"module_path": module, "function": last})
    yield "function of protocol 0", packed(old, protocol=0)
    for protocol in (0, 1):
        state = {"bit_generator": last} if protocol == 0 else named({"bit_generator": last})
        root = node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={"bit_generator": state},
        )
        yield f"generator of protocol {protocol}", packed(root, protocol=protocol)


def callables(trip: str, script: str, pickled: str) -> dict[str, list[Any]]:
    """Return callables with arguments with which they would touch ``trip``, or do worse."""
    code = f"open({trip!r}, 'w').close()"
    return {
        "builtins.exec": [code],
        "builtins.eval": [code],
        "builtins.open": [trip, "w"],
        "builtins.__import__": ["antigravity_of_a_forger"],
        "builtins.compile": [code, "x", "exec"],
        "builtins.getattr": [code, "x"],
        "builtins.map": [code],
        "numpy.testing.measure": [code],
        "numpy.testing.rundocs": [script],
        "numpy.load": [pickled, None, True],
        "numpy.fromfile": [pickled],
        "numpy.memmap": [trip, "uint8", "w+", 0, [10]],
        "numpy.lib.format.open_memmap": [trip, "w+", "uint8", [10]],
        "numpy.save": [trip, [1]],
        "numpy.savetxt": [trip, [1.0]],
        "numpy.loadtxt": [pickled],
        "numpy.genfromtxt": [pickled],
        "numpy.ctypeslib.load_library": [pickled, "/"],
        "numpy.apply_along_axis": [code, 0, [1]],
        "numpy.f2py.run_main": [["-h", trip]],
        "scipy.io.loadmat": [pickled],
        "scipy.io.savemat": [trip, {"a": 1}],
        "scipy.io.mmwrite": [trip, [[1.0]]],
        "scipy.io.mmread": [pickled],
        "scipy.io.FortranFile": [trip, "w"],
        "scipy.io.netcdf_file": [trip, "w"],
        "scipy.optimize.minimize": [code, [1.0]],
        "scipy.special.logsumexp": [[1.0]],
        "sklearn.datasets.load_svmlight_file": [pickled],
        "sklearn.datasets.dump_svmlight_file": [[[1.0]], [1.0], trip],
        "sklearn.datasets.load_files": ["."],
        "sklearn.datasets.fetch_openml": ["x"],
        "sklearn.utils.estimator_html_repr": [code],
        "sklearn.utils.parallel.Parallel": [2],
        "sklearn.pipeline.make_pipeline": [code],
        "sklearn.tree._tree.Tree": [2, [2], 1],
        "sklearn.svm._classes.SVC": [],
        "sklearn.neighbors._kd_tree.KDTree": [],
        "joblib.load": [pickled],
        "evenhand._folder.write_folder": [trip, code],
        "evenhand.datasets.read_table": [pickled],
        "evenhand.cli.app.main": [],
        "evenhand.privacy.DatabaseStore": [f"sqlite:///{trip}"],
        "evenhand.methods.load": [pickled],
        "evenhand.report.write_report": [code, trip],
        "functools.partial": [code],
        "operator.methodcaller": ["predict"],
        "os.system": [f"touch {trip}"],
        "subprocess.Popen": [["touch", trip]],
        "pickle.loads": [code],
        "importlib.import_module": ["antigravity_of_a_forger"],
        "ctypes.CDLL": [pickled],
        "shutil.rmtree": ["/tmp/nothing-of-a-forger"],
        "types.FunctionType": [code],
    }
