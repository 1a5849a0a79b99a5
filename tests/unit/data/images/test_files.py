"""Images from folders: a class for each folder, one size for all, and errors that name files."""

import numpy as np
from PIL import Image
from tests.sentences import refuses

from calibrant.data import read_images, scan_images
from calibrant.errors import InputError


def save(folder, name, colour="black", size=(8, 6), mode="RGB"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(file)
    return file


def pets(folder):
    """Two cats and a dog, and files that are none of them."""
    save(folder, "dog/1.png", "white")
    save(folder, "cat/b.jpg", "red")
    save(folder, "cat/a.PNG", "blue")
    (folder / "cat" / "notes.txt").write_text("two cats")
    (folder / "readme.md").write_text("pets")
    (folder / ".cache").mkdir()
    (folder / "__MACOSX").mkdir()
    (folder / "dog" / "._1.png").write_bytes(b"x")
    return folder


def test_folders_are_classes_and_files_come_in_order(tmp_path):
    found = read_images(pets(tmp_path))
    assert found.names == ["cat/a.PNG", "cat/b.jpg", "dog/1.png"]
    assert found.labels == ["cat", "cat", "dog"]
    assert found.classes == ("cat", "dog")
    assert found.weights is None
    assert found.images.shape == (3, 6, 8, 3)
    assert found.images.dtype == np.uint8
    assert found.images[0, 0, 0].tolist() == [0, 0, 255]
    assert found.images[2, 0, 0].tolist() == [255, 255, 255]
    assert read_images(str(tmp_path)).names == found.names


def test_grey_and_colour_together_become_colour_and_grey_alone_stays_grey(tmp_path):
    save(tmp_path, "cat/1.png", 77, mode="L")
    save(tmp_path, "dog/1.png", 99, mode="L")
    grey = read_images(tmp_path).images
    assert grey.shape == (2, 6, 8, 1)
    assert np.unique(grey).tolist() == [77, 99]
    assert read_images(tmp_path, channels=3).images.shape == (2, 6, 8, 3)
    save(tmp_path, "dog/2.png", "red")
    both = read_images(tmp_path).images
    assert both[0, 0, 0].tolist() == [77, 77, 77]
    assert both[2, 0, 0].tolist() == [255, 0, 0]
    assert read_images(tmp_path, channels=1).images.shape == (3, 6, 8, 1)


def test_images_of_many_sizes_need_one_and_two_files_are_named(tmp_path):
    save(tmp_path, "cat/1.png")
    save(tmp_path, "cat/2.png")
    save(tmp_path, "dog/1.png", size=(40, 30))
    with refuses(
        InputError, "cat/1.png", "6 x 8", "pixels", "dog/1.png", "30 x 40", "(--image-size 64)"
    ):
        read_images(tmp_path)
    assert read_images(tmp_path, size=16).images.shape == (3, 16, 16, 3)
    with refuses(InputError, "cat/1.png has 6 x 8 pixels and dog/1.png has 30 x 40"):
        list(scan_images(tmp_path, batch=1))


def test_scanning_gives_the_same_in_parts(tmp_path):
    whole = read_images(pets(tmp_path), size=5)
    parts = list(scan_images(tmp_path, size=5, batch=2))
    assert [len(part) for part in parts] == [2, 1]
    assert np.array_equal(np.concatenate([part.images for part in parts]), whole.images)
    assert [name for part in parts for name in part.names] == whole.names
    assert [label for part in parts for label in part.labels] == whole.labels
    assert parts[1].classes == ("cat", "dog")


def test_a_flat_folder_or_one_file_can_be_scanned_without_labels(tmp_path):
    save(tmp_path, "2.png", "white")
    save(tmp_path, "1.png")
    (part,) = scan_images(tmp_path)
    assert (part.names, part.labels, part.classes) == (["1.png", "2.png"], None, None)
    (one,) = scan_images(tmp_path / "2.png")
    assert (one.names, one.labels) == (["2.png"], None)
    with refuses(InputError, "no subfolders", "such as 1.png)", "folder named after the class"):
        read_images(tmp_path)


def test_what_was_asked_for_wrongly_is_told_at_once(tmp_path):
    pets(tmp_path)
    for batch in (0, 2.5, True):
        with refuses(InputError, "batch must be a whole number of at least 1"):
            scan_images(tmp_path, batch=batch)
    with refuses(InputError, "size must be"):
        scan_images(tmp_path, size=0)
    with refuses(InputError, "channels must be 1 for grey or 3 for colour, got 4"):
        read_images(tmp_path, channels=4)


def test_paths_that_lead_nowhere_are_named(tmp_path):
    for read in (read_images, scan_images):
        with refuses(InputError, "gone does not exist: give a folder"):
            read(tmp_path / "gone")
        with refuses(InputError, "path is empty"):
            read("")
        (tmp_path / "notes.txt").write_text("none")
        with refuses(InputError, "notes.txt is neither a folder nor an .npz file"):
            read(tmp_path / "notes.txt")
    with refuses(InputError, "one.png is neither a folder nor"):
        read_images(save(tmp_path, "one.png"))


def test_a_folder_without_images_is_named(tmp_path):
    with refuses(InputError, "no subfolders: put the images of each class"):
        read_images(tmp_path)
    with refuses(InputError, "a folder without png"):
        list(scan_images(tmp_path))
    pets(tmp_path)
    (tmp_path / "emu").mkdir()
    (tmp_path / "emu" / "notes.txt").write_text("none yet")
    with refuses(InputError, "class folder", "emu has no images (png", "add some"):
        read_images(tmp_path)


def test_folders_one_level_too_deep_are_told(tmp_path):
    pets(tmp_path / "train")
    with refuses(InputError, "train has no images but", "'cat': give"):
        read_images(tmp_path)


def test_an_image_beside_the_folders_of_the_classes_is_refused(tmp_path):
    save(pets(tmp_path), "loose.png")
    for read in (read_images, lambda path: list(scan_images(path))):
        with refuses(InputError, "loose.png", "class folder"):
            read(tmp_path)


def test_a_broken_image_is_named(tmp_path):
    (pets(tmp_path) / "dog" / "2.jpg").write_bytes(b"not a picture")
    with refuses(InputError, "dog/2.jpg cannot be read as an image (") as told:
        read_images(tmp_path)
    assert "\n" not in str(told.value)


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    pets(tmp_path)
    monkeypatch.setattr("pathlib.Path.iterdir", lambda self: (_ for _ in ()).throw(PermissionError))
    with refuses(InputError, "permission denied"):
        read_images(tmp_path)
