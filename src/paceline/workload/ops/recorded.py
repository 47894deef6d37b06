"""An operation known only by what it cost when a user's network was captured."""

from dataclasses import dataclass
from typing import ClassVar

from paceline.errors import InputError
from paceline.workload.cost import Gemm, Shape
from paceline.workload.ops.base import Kept, Op, Parameters, Shapes, Traffic, Work, register


@register
@dataclass(frozen=True, slots=True)
class Recorded(Op):
    """Costs as they were recorded, divided by the batch they were recorded at.

    ``operation`` is the framework's name for it, ``shape`` the result of one sample. Products
    are (m, n, k, count) of one sample, their count growing with the batch. ``*_elements`` are
    values read and written, or kept, per sample. A recorded operation has no sequence: its
    costs hold at the shapes it was captured with.
    """

    kind: ClassVar[str] = "recorded"
    least_inputs: ClassVar[int] = 0
    most_inputs: ClassVar[int | None] = None

    operation: str
    shape: tuple[int, ...]
    parameter_names: tuple[str, ...] = ()
    parameter_shapes: tuple[tuple[int, ...], ...] = ()
    forward_products: tuple[tuple[float, ...], ...] = ()
    weight_gradient_products: tuple[tuple[float, ...], ...] = ()
    input_gradient_products: tuple[tuple[float, ...], ...] = ()
    forward_elements: float = 0.0
    backward_elements: float = 0.0
    kept_elements: float = 0.0
    keeps_inputs: tuple[int, ...] = ()
    keeps_output: bool = False
    view: bool = False

    def __post_init__(self) -> None:
        if len(self.parameter_names) != len(self.parameter_shapes):
            raise InputError("every recorded parameter needs a name and a shape")
        products = (
            *self.forward_products,
            *self.weight_gradient_products,
            *self.input_gradient_products,
        )
        if any(len(product) != 4 or min(product) < 0 for product in products):
            raise InputError("a recorded product is m, n, k and count, none of them negative")

    @property
    def is_view(self) -> bool:
        """Whether the framework reported a view of the first input."""
        return self.view

    def output(self, inputs: Shapes) -> Shape:
        """As it was recorded."""
        return self.shape

    def parameters(self, inputs: Shapes) -> Parameters:
        """As they were recorded."""
        return dict(zip(self.parameter_names, self.parameter_shapes, strict=True))

    def work(self, inputs: Shapes, needs_input_gradient: bool) -> Work:
        """As it was recorded."""
        return Work(
            forward=_gemms(self.forward_products),
            weight_gradient=_gemms(self.weight_gradient_products),
            input_gradient=_gemms(self.input_gradient_products if needs_input_gradient else ()),
            forward_traffic=Traffic(self.forward_elements),
            backward_traffic=Traffic(self.backward_elements),
            kept=Kept(self.keeps_inputs, self.keeps_output, self.kept_elements),
        )


def _gemms(products: tuple[tuple[float, ...], ...]) -> tuple[Gemm, ...]:
    return tuple(Gemm(m, n, k, count, "count") for m, n, k, count in products)
