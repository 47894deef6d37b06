"""Dataset readers on files written byte by byte, and their errors for invalid files."""

import array
import builtins
import gzip

import datasets
import numpy as np
import pytest


def write_cifar(directory, name, records):
    content = bytearray()
    for label, pixels in records:
        content.append(label)
        content += pixels
    (directory / name).write_bytes(bytes(content))


def test_cifar10_keeps_files_in_order_and_channels_first(tmp_path):
    first, second = bytes(range(256)) * 12, bytes([255]) * 3072
    write_cifar(tmp_path, "data_batch_1.bin", [(3, first)])
    write_cifar(tmp_path, "data_batch_2.bin", [(9, second), (0, first)])
    write_cifar(tmp_path, "test_batch.bin", [(5, second)])
    train = datasets.load("cifar10", str(tmp_path))
    assert len(train) == 3
    assert train.shape == (3, 32, 32)
    values, labels = train.batch([1, 0])
    assert labels.tolist() == [9, 3]
    assert values[0] == 1.0
    assert values[3072] == -1.0
    assert values[3072 + 51] == array.array("f", [51 / 127.5 - 1])[0]
    assert datasets.load("cifar10", str(tmp_path), "test").labels.tolist() == [5]


def test_a_truncated_cifar_file_is_named(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(b"\x01" * 3000)
    with pytest.raises(datasets.DatasetError, match=r"data_batch_1\.bin: 3000 bytes"):
        datasets.load("cifar10", str(tmp_path))


def test_missing_cifar_files_error_names_the_expected_files(tmp_path):
    with pytest.raises(datasets.DatasetError, match="binary version of CIFAR-10"):
        datasets.load("cifar10", str(tmp_path))


def test_a_numpy_archive_of_pixels_and_one_of_floats(tmp_path):
    pixels = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 2, 2)
    np.savez(tmp_path / "pixels.npz", images=pixels, labels=np.array([1, 0]))
    read = datasets.load("npz", str(tmp_path / "pixels.npz"))
    values, labels = read.batch([1])
    assert labels.tolist() == [0]
    assert values == array.array("f", (byte / 127.5 - 1 for byte in range(12, 24)))
    floats = pixels.astype(np.float64) / 7
    np.savez(tmp_path / "floats.npz", x_train=floats, y_train=[0, 4], x_test=floats, y_test=[0, 2])
    read = datasets.load("npz", str(tmp_path / "floats.npz"))
    assert read.classes == 5
    assert read.batch([0])[0].tobytes() == floats[0].astype(np.float32).tobytes()
    assert datasets.load("npz", str(tmp_path / "floats.npz"), "test").classes == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "has a; expected"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "do not match"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "labels must be integers from 0"),
        ({"x": np.zeros((3, 2), complex), "y": np.zeros(3, int)}, "samples must be"),
    ],
)
def test_invalid_archive_error_states_the_cause(tmp_path, arrays, message):
    np.savez(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(datasets.DatasetError, match=message):
        datasets.load("npz", str(tmp_path / "wrong.npz"))


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "notes.npz").write_text("hello")
    with pytest.raises(datasets.DatasetError, match="as a NumPy archive"):
        datasets.load("npz", str(tmp_path / "notes.npz"))


def test_the_digits_are_split_without_overlap_and_scaled():
    pytest.importorskip("sklearn")
    train, test = datasets.load("digits"), datasets.load("digits", split="test")
    assert len(train) + len(test) == 1797
    assert len(test) == 359
    assert train.shape == (1, 8, 8)
    values, labels = train.batch(range(len(train)))
    assert min(values) == -1.0
    assert max(values) == 1.0
    assert set(labels) == set(range(10))


def test_the_digits_are_those_of_scikit_learn():
    bunch = pytest.importorskip("sklearn.datasets").load_digits()
    values, labels = datasets.load("digits", split="test").batch(range(359))
    assert list(labels) == bunch.target[4::5].tolist()
    assert list(values) == (bunch.data[4::5] / 8.0 - 1.0).ravel().tolist()


@pytest.mark.parametrize("content", [b"not compressed", b"", gzip.compress(b"1,2,3", mtime=0)])
def test_a_table_that_is_not_of_digits_is_refused(tmp_path, content):
    (tmp_path / "digits.csv.gz").write_bytes(content)
    with pytest.raises(datasets.DatasetError, match="as scikit-learn's digits"):
        datasets.load("digits", str(tmp_path / "digits.csv.gz"))


def test_an_image_folder_numbers_classes_by_name(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    for name, colour in (("cat", (255, 0, 0)), ("dog", (0, 0, 255))):
        (tmp_path / name).mkdir()
        image_module.new("RGB", (4, 2), colour).save(tmp_path / name / "1.png")
    read = datasets.load("image_folder", str(tmp_path))
    assert read.shape == (3, 2, 4)
    values, labels = read.batch([0, 1])
    assert labels.tolist() == [0, 1]
    assert values[:8].tolist() == [1.0] * 8
    assert values[24:32].tolist() == [-1.0] * 8
    image_module.new("RGB", (5, 2)).save(tmp_path / "dog" / "2.png")
    with pytest.raises(datasets.DatasetError, match=r"2\.png is 5x2, the first image 4x2"):
        datasets.load("image_folder", str(tmp_path))


def test_a_missing_library_is_named_with_its_pip_line(tmp_path, monkeypatch):
    real_import = builtins.__import__

    def without_pillow(name, *args, **kwargs):
        if name == "PIL":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(datasets.DatasetError, match="pip install pillow"):
        datasets.load("image_folder", str(tmp_path))
    with pytest.raises(datasets.DatasetError, match="pip install scikit-learn"):
        datasets.load("digits")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("imagenet", "x"), "unknown kind of data 'imagenet'"),
        (("cifar10", None), "needs a path"),
        (("cifar10", "no/such/place"), "'no/such/place' does not exist"),
        (("digits", None, "validation"), "unknown split 'validation'"),
    ],
)
def test_load_errors_are_one_line(arguments, message):
    with pytest.raises(datasets.DatasetError, match=message):
        datasets.load(*arguments)


def test_ranks_share_a_global_batch_without_overlap_and_wrap_around():
    order = list(range(10))
    assert datasets.shard(order, step=0, batch=2, rank=0, world=2) == [0, 1]
    assert datasets.shard(order, step=0, batch=2, rank=1, world=2) == [2, 3]
    assert datasets.shard(order, step=2, batch=2, rank=1, world=2) == [0, 1]
