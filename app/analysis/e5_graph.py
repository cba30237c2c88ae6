"""The int8 ONNX graph of multilingual-e5-small, written straight from the weights: no full-precision file in between.

Input `input_ids` (1, tokens) int64; output `embedding` (1, hidden) float32 of length 1. The graph takes one text at a
time, so it has no attention mask. Every matrix is int8 with a scale per output column; activations are quantised as
they pass (uint8, one scale a text). The word table is int8 with a scale per row.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from app.analysis.e5_weights import E5Weights

_OPSET = 20
_IR_VERSION = 10
# Seven bits, not eight: processors without VNNI add two products of uint8 x int8 in 16 bits and saturate at eight.
_MATRIX_LIMIT = 63
_TABLE_LIMIT = 127


def build_graph(weights: E5Weights) -> onnx.ModelProto:
    """The whole model; about 118 MB serialised."""
    return _Graph(weights).model()


def quantise_rows(rows: NDArray[np.float32], limit: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric integers in [-limit, limit] and one scale a row, so that integers * scale is close to `rows`."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-12) / limit
    return np.rint(rows / scale).astype(np.int8), scale.astype(np.float32)


def _quantise(blocks: Iterable[NDArray[np.float32]], limit: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    parts = [quantise_rows(block, limit) for block in blocks]
    return np.concatenate([integers for integers, _ in parts]), np.concatenate([scale for _, scale in parts])


class _Graph:
    """Collects nodes and constants; every method that adds a node returns the name of its output."""

    def __init__(self, weights: E5Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.outputs(operator, 1, *inputs, **attributes)[0]

    def outputs(self, operator: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def linear(self, activations: list[str], name: str, inputs: int, outputs: int) -> str:
        """activations @ matrix + bias, where `activations` is what `dynamic` returned."""
        integers, scale, zero = activations
        matrix, column_scale = _quantise(self.weights.blocks(f"{name}.w", outputs, inputs), _MATRIX_LIMIT)
        product = self.node("MatMulInteger", integers, self.constant(f"{name}.w", matrix.T), zero)
        both_scales = self.node("Mul", scale, self.constant(f"{name}.scale", column_scale[:, 0]))
        real = self.node("Mul", self.node("Cast", product, to=TensorProto.FLOAT), both_scales)
        return self.node("Add", real, self.constant(f"{name}.b", self.weights.dense(f"{name}.b", outputs)))

    def dynamic(self, x: str) -> list[str]:
        return self.outputs("DynamicQuantizeLinear", 3, x)

    def layer_norm(self, x: str, name: str) -> str:
        size = self.weights.hidden
        gain = self.constant(f"{name}.w", self.weights.dense(f"{name}.w", size))
        bias = self.constant(f"{name}.b", self.weights.dense(f"{name}.b", size))
        return self.node("LayerNormalization", x, gain, bias, axis=-1, epsilon=self.weights.epsilon)

    def embeddings(self) -> str:
        weights = self.weights
        table, row_scale = _quantise(weights.blocks("emb.word", weights.vocabulary, weights.hidden), _TABLE_LIMIT)
        integers = self.node("Gather", self.constant("emb.word", table), "input_ids")
        scale = self.node("Gather", self.constant("emb.word.scale", row_scale), "input_ids")
        words = self.node("Mul", self.node("Cast", integers, to=TensorProto.FLOAT), scale)
        positions = weights.dense("emb.pos", weights.positions, weights.hidden)
        # Token type 0 is the only one in use: it is added to the positions once and for all.
        positions += weights.dense("emb.type", weights.token_types, weights.hidden)[0]
        zero, one = (self.constant(f"index.{i}", np.array([i], np.int64)) for i in (0, 1))
        length = self.node("Gather", self.node("Shape", "input_ids"), one)
        places = self.node("Slice", self.constant("emb.pos", positions), zero, length, zero)
        return self.layer_norm(self.node("Add", words, places), "emb.ln")

    def attention(self, x: str, layer: str) -> str:
        size = self.weights.hidden
        activations = self.dynamic(x)
        q, k, v = (self.node("Reshape", self.linear(activations, layer + name, size, size), "split") for name in "qkv")
        q, v = (self.node("Transpose", y, perm=[0, 2, 1, 3]) for y in (q, v))
        k = self.node("Transpose", k, perm=[0, 2, 3, 1])
        shares = self.node("Softmax", self.node("Mul", self.node("MatMul", q, k), "root"), axis=-1)
        heard = self.node("Transpose", self.node("MatMul", shares, v), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", heard, "join")
        added = self.node("Add", x, self.linear(self.dynamic(joined), f"{layer}ao", size, size))
        return self.layer_norm(added, f"{layer}aln")

    def feed_forward(self, x: str, layer: str) -> str:
        size, inner = self.weights.hidden, self.weights.feed_forward
        wide = self.node("Gelu", self.linear(self.dynamic(x), f"{layer}fi", size, inner))
        narrow = self.linear(self.dynamic(wide), f"{layer}fo", inner, size)
        return self.layer_norm(self.node("Add", x, narrow), f"{layer}oln")

    def model(self) -> onnx.ModelProto:
        size, heads = self.weights.hidden, self.weights.heads
        self.constant("split", np.array([0, 0, heads, size // heads], np.int64))
        self.constant("join", np.array([0, 0, size], np.int64))
        self.constant("root", np.array((size // heads) ** -0.5, np.float32))
        x = self.embeddings()
        for number in range(self.weights.layers):
            x = self.feed_forward(self.attention(x, f"l{number}."), f"l{number}.")
        mean = self.node("ReduceMean", x, "index.1", keepdims=0)
        self.nodes.append(helper.make_node("LpNormalization", [mean], ["embedding"], axis=-1, p=2))
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
        vector = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, size])
        graph = helper.make_graph(self.nodes, "e5", [ids], [vector], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
