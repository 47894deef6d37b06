import pytest

from paceline.errors import InputError
from paceline.predictor.comm.compression import Compression, CompressionKind


def test_sixteen_bits_halve_a_gradient_once():
    half = Compression(CompressionKind.FP16)
    assert half.sent_bytes(400.0, 4) == 200.0
    assert half.sent_bytes(200.0, 2) == 200.0


def test_the_largest_entries_travel_with_their_indices():
    top = Compression(CompressionKind.TOP_K, density=0.01)
    assert top.sent_bytes(4e6, 4) == pytest.approx(1e6 * 0.01 * 8)
    assert top.gathers
    assert top.memory_passes > Compression(CompressionKind.FP16).memory_passes > 0


def test_a_density_must_be_a_fraction():
    with pytest.raises(InputError, match=r"density must be in"):
        Compression(CompressionKind.TOP_K, density=1.5)
