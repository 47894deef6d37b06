"""Real data for any worker: CIFAR-10 binary files, an image folder, a NumPy archive, the digits.

Each reader returns a `Dataset`: samples as bytes or C floats in one buffer (channels first), and
labels. CIFAR-10 and the digits only need the standard library; other readers need NumPy or Pillow.
One table converts bytes to floats (byte / 127.5 - 1, rounded to float32), so that every framework
trains on the same numbers.
"""

import array
import gzip
import importlib.util
import math
import os
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

FLOAT_OF_BYTE = array.array("f", (byte / 127.5 - 1.0 for byte in range(256)))
"""Scaling of a pixel's byte: 0 to -1.0, 255 to 1.0."""

CIFAR10_SHAPE = (3, 32, 32)
IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


class DatasetError(Exception):
    """Missing or invalid data; the message names the file and the remedy."""


class Dataset:
    """Samples of one shape with their labels, in memory.

    ``samples`` is the row-major content of all samples: ``bytes`` (pixels, 0 to 255) or an
    ``array('f')``. ``labels`` has one integer in [0, classes) per sample.
    """

    def __init__(
        self,
        samples: "bytes | array.array[float]",
        labels: "array.array[int]",
        shape: tuple[int, ...],
        classes: int,
    ) -> None:
        self.samples, self.labels = samples, labels
        self.shape, self.classes = shape, classes

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Iterable[int]) -> "tuple[array.array[float], array.array[int]]":
        """Return the samples at ``indices`` as floats, and their labels."""
        size = math.prod(self.shape)
        values, labels = array.array("f"), array.array("q")
        for index in indices:
            sample = self.samples[index * size : (index + 1) * size]
            if isinstance(sample, bytes):
                values.extend(map(FLOAT_OF_BYTE.__getitem__, sample))
            else:
                values.extend(sample)
            labels.append(self.labels[index])
        return values, labels


def load(kind: str, path: "str | None" = None, split: str = "train") -> Dataset:
    """Load the dataset of ``kind`` (one of `KINDS`) at ``path``; ``split`` is train or test."""
    if kind not in KINDS:
        raise DatasetError(f"unknown kind of data '{kind}'; choose one of {', '.join(KINDS)}")
    if split not in ("train", "test"):
        raise DatasetError(f"unknown split '{split}'; choose train or test")
    if kind == "digits":
        return digits(split, path)
    if not path:
        raise DatasetError(f"data of kind '{kind}' needs a path")
    if not os.path.exists(path):
        raise DatasetError(f"'{path}' does not exist")
    return FILE_READERS[kind](path, split)


def cifar10(directory: str, split: str) -> Dataset:
    """CIFAR-10 (or part of it) from ``data_batch_*.bin``, or ``test_batch.bin`` for the test split.

    A record is a label byte, then 1024 red, 1024 green and 1024 blue bytes.
    """
    prefix = "data_batch" if split == "train" else "test_batch"
    names = sorted(
        name for name in os.listdir(directory) if name.startswith(prefix) and name.endswith(".bin")
    )
    if not names:
        raise DatasetError(
            f"'{directory}' has no {prefix}*.bin; unpack the binary version of CIFAR-10 there"
        )
    record = 1 + math.prod(CIFAR10_SHAPE)
    samples, labels = bytearray(), array.array("q")
    for name in names:
        with open(os.path.join(directory, name), "rb") as file:
            content = file.read()
        if not content or len(content) % record:
            raise DatasetError(
                f"{name}: {len(content)} bytes are not a whole number of {record}-byte records"
            )
        labels.extend(content[::record])
        for start in range(1, len(content), record):
            samples += content[start : start + record - 1]
    if max(labels) > 9:
        raise DatasetError(
            f"'{directory}': label {max(labels)} is out of range for CIFAR-10 (0 to 9)"
        )
    return Dataset(bytes(samples), labels, CIFAR10_SHAPE, 10)


def image_folder(directory: str, split: str) -> Dataset:
    """Images below ``directory/<class>/``, or ``directory/<split>/<class>/`` where that exists.

    Classes are numbered in alphabetical order. Every image must have the size of the first: this
    reader feeds a benchmark and resizes nothing.
    """
    try:
        from PIL import Image
    except ImportError:
        raise DatasetError(
            "an image folder needs Pillow in the framework's environment: pip install pillow"
        ) from None
    root = os.path.join(directory, split)
    root = root if os.path.isdir(root) else directory
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    files = [
        (os.path.join(root, name, file), label)
        for label, name in enumerate(classes)
        for file in sorted(os.listdir(os.path.join(root, name)))
        if file.lower().endswith(IMAGE_SUFFIXES)
    ]
    if not files:
        raise DatasetError(f"'{root}' has no <class>/<image> files ({', '.join(IMAGE_SUFFIXES)})")
    samples, size = bytearray(), (0, 0)
    for path, _ in files:
        try:
            with Image.open(path) as image:
                pixels = image.convert("RGB")
        except Exception as error:  # Pillow raises many kinds for damaged files
            raise DatasetError(f"cannot read {path} as an image ({error!r:.200})") from None
        size = size if samples else pixels.size
        if pixels.size != size:
            raise DatasetError(
                f"{path} is {pixels.width}x{pixels.height}, the first image {size[0]}x{size[1]}; "
                "resize the folder to one size"
            )
        for channel in pixels.split():
            samples += channel.tobytes()
    shape = (3, size[1], size[0])
    labels = array.array("q", (label for _, label in files))
    return Dataset(bytes(samples), labels, shape, len(classes))


def numpy_archive(path: str, split: str) -> Dataset:
    """An ``.npz`` with samples and labels, named as one of `ARCHIVE_NAMES`; split by a prefix.

    ``x_train`` and ``y_train`` are preferred to plain ``x`` and ``y``. Samples are (samples, ...)
    of uint8 (pixels) or floats, used as they are; labels are (samples,) integers.
    """
    numpy = _numpy()
    try:
        with numpy.load(path, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise DatasetError(f"cannot read {path} as a NumPy archive ({error!r:.200})") from None
    for samples_name, labels_name in ARCHIVE_NAMES:
        for suffix in (f"_{split}", ""):
            if samples_name + suffix in content and labels_name + suffix in content:
                return _from_arrays(
                    content[samples_name + suffix], content[labels_name + suffix], path
                )
    raise DatasetError(
        f"{path} has {', '.join(content) or 'nothing'}; expected arrays named "
        + " or ".join(" and ".join(pair) for pair in ARCHIVE_NAMES)
    )


def digits(split: str, path: "str | None" = None) -> Dataset:
    """scikit-learn's 1797 handwritten digits of 1x8x8, scaled to [-1, 1]; every fifth is test.

    ``path`` is its compressed table (`digits_path`), of which each row is 64 numbers from 0 to 16
    and a label: it is read without scikit-learn, and without NumPy.
    """
    path = path if path and os.path.exists(path) else digits_path()
    if path is None:
        raise DatasetError("the digits are part of scikit-learn: pip install scikit-learn")
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            rows = [[float(number) for number in line.split(",")] for line in file]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetError(f"cannot read {path} as scikit-learn's digits ({error})") from None
    if not rows or any(len(row) != 65 or not 0 <= row[64] <= 9 for row in rows):
        raise DatasetError(f"cannot read {path} as scikit-learn's digits")
    chosen = [row for number, row in enumerate(rows) if (number % 5 == 4) == (split == "test")]
    samples = array.array("f", (pixel / 8.0 - 1.0 for row in chosen for pixel in row[:64]))
    return Dataset(samples, array.array("q", (int(row[64]) for row in chosen)), (1, 8, 8), 10)


def digits_path() -> "str | None":
    """Return the path of scikit-learn's digits in this interpreter; None without scikit-learn.

    scikit-learn is not imported.
    """
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        return None
    path = os.path.join(os.path.dirname(found.origin), "datasets", "data", "digits.csv.gz")
    return path if os.path.exists(path) else None


ARCHIVE_NAMES = (("x", "y"), ("images", "labels"), ("data", "target"))
"""Accepted names of (samples, labels) in a NumPy archive."""

FILE_READERS = {"cifar10": cifar10, "image_folder": image_folder, "npz": numpy_archive}
"""Reader of each kind of data on disk, called with the path and the split."""

KINDS = (*FILE_READERS, "digits")
"""Every kind of data for `load`."""


def shard(order: Sequence[int], step: int, batch: int, rank: int, world: int) -> list[int]:
    """Return the indices of this rank's samples in ``step``, from global batches in order.

    The order starts again at its end, so that every batch is full.
    """
    start = (step * world + rank) * batch
    return [order[(start + offset) % len(order)] for offset in range(batch)]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise DatasetError(
            "this data needs NumPy in the framework's environment: pip install numpy"
        ) from None
    return numpy


def _from_arrays(samples: Any, labels: Any, source: str) -> Dataset:
    numpy = _numpy()
    if samples.ndim < 2 or labels.shape != samples.shape[:1] or not len(labels):
        raise DatasetError(
            f"{source}: samples of shape {samples.shape} do not match labels of {labels.shape}"
        )
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= 2**31:
        raise DatasetError(f"{source}: labels must be integers from 0 to 2^31 (got {labels.dtype})")
    if samples.dtype == numpy.uint8:
        content: Any = numpy.ascontiguousarray(samples).tobytes()
    elif samples.dtype.kind == "f":
        content = array.array("f")
        content.frombytes(numpy.ascontiguousarray(samples, dtype=numpy.float32).tobytes())
    else:
        raise DatasetError(f"{source}: samples must be uint8 or floats (got {samples.dtype})")
    flat_labels = array.array("q", labels.astype(numpy.int64).tolist())
    return Dataset(content, flat_labels, tuple(samples.shape[1:]), int(labels.max()) + 1)
