"""One image file: upright, in grey or colour, at the size asked for, or named in a sentence."""

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image
from tests.sentences import refuses

from calibrant.data.images.decoding import check_size, read_image, resize_images
from calibrant.errors import InputError


def saved(tmp_path, image, name="one.png", **options):
    file = tmp_path / name
    image.save(file, **options)
    return file


def gradient(height=4, width=6):
    draw = np.random.default_rng(0)
    return draw.integers(0, 256, size=(height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.PNG"])
def test_a_lossless_file_is_read_as_it_was_saved(tmp_path, name):
    file = saved(tmp_path, Image.fromarray(gradient()), name)
    assert np.array_equal(read_image(file), gradient())


def test_webp_gif_and_jpeg_are_read(tmp_path):
    flat = Image.new("RGB", (6, 4), (200, 100, 50))
    for name, options in (
        ("a.webp", {"lossless": True}),
        ("a.gif", {}),
        ("a.jpg", {"quality": 95}),
    ):
        found = read_image(saved(tmp_path, flat, name, **options))
        assert found.shape == (4, 6, 3)
        assert np.abs(found[0, 0].astype(int) - (200, 100, 50)).max() <= 3


def test_grey_has_one_channel(tmp_path):
    grey = gradient()[..., 0]
    assert np.array_equal(read_image(saved(tmp_path, Image.fromarray(grey)))[..., 0], grey)
    black_and_white = Image.fromarray(grey > 128)
    assert set(np.unique(read_image(saved(tmp_path, black_and_white)))) == {0, 255}


def test_a_palette_becomes_colour(tmp_path):
    flat = Image.new("RGB", (4, 4), (255, 0, 0)).convert("P", palette=Image.Palette.ADAPTIVE)
    assert read_image(saved(tmp_path, flat))[0, 0].tolist() == [255, 0, 0]


def test_what_is_transparent_shows_white(tmp_path):
    clear = Image.new("RGBA", (2, 2), (255, 0, 0, 0))
    clear.putpixel((0, 0), (255, 0, 0, 255))
    found = read_image(saved(tmp_path, clear))
    assert found[0, 0].tolist() == [255, 0, 0]
    assert found[1, 1].tolist() == [255, 255, 255]
    half = Image.new("LA", (2, 2), (0, 0))
    assert read_image(saved(tmp_path, half)).tolist() == [[[255], [255]]] * 2
    palette = Image.new("P", (2, 2), 0)
    palette.putpalette([10, 20, 30])
    assert read_image(saved(tmp_path, palette, transparency=0))[0, 0].tolist() == [255, 255, 255]


def test_the_way_a_camera_was_held_is_followed(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    file = saved(tmp_path, Image.fromarray(gradient()), exif=exif)
    assert np.array_equal(read_image(file), np.rot90(gradient(), -1))


def test_of_sixteen_bits_the_upper_eight_are_read(tmp_path):
    values = np.array([[0, 255], [256, 65535]], dtype=np.uint16)
    assert read_image(saved(tmp_path, Image.fromarray(values)))[..., 0].tolist() == [
        [0, 0],
        [1, 255],
    ]


def test_of_an_animation_the_first_picture_is_read(tmp_path):
    black, white = Image.new("L", (4, 4), 0), Image.new("L", (4, 4), 255)
    file = saved(tmp_path, black, "a.gif", save_all=True, append_images=[white])
    assert int(read_image(file).max()) == 0


def test_the_middle_is_cut_out_at_the_size_asked_for(tmp_path):
    pixels = np.zeros((4, 12, 3), dtype=np.uint8)
    pixels[:, 4:8] = 255
    file = saved(tmp_path, Image.fromarray(pixels))
    assert np.array_equal(read_image(file, size=4), np.full((4, 4, 3), 255))
    assert read_image(file, size=(2, 6)).shape == (2, 6, 3)
    assert read_image(file, size=32).shape == (32, 32, 3)
    assert np.array_equal(read_image(file, size=(4, 12)), pixels)


def test_channels_may_be_asked_for(tmp_path):
    colour = saved(tmp_path, Image.fromarray(gradient()))
    assert read_image(colour, channels=1).shape == (4, 6, 1)
    grey = saved(tmp_path, Image.fromarray(gradient()[..., 0]), "grey.png")
    found = read_image(grey, channels=3)
    assert np.array_equal(found[..., 0], found[..., 2])
    assert found.shape == (4, 6, 3)


def test_arrays_are_resized_as_files_are(tmp_path):
    file = saved(tmp_path, Image.fromarray(gradient(20, 30)))
    images = np.stack([gradient(20, 30)] * 2)
    assert np.array_equal(resize_images(images, 8)[1], read_image(file, size=8))
    assert resize_images(images[..., :1], 8).shape == (2, 8, 8, 1)
    assert resize_images(images, None) is images
    assert resize_images(images, (20, 30)) is images


def test_a_broken_file_is_named_in_one_sentence(tmp_path):
    whole = saved(tmp_path, Image.fromarray(gradient(40, 40))).read_bytes()
    for name, content in {
        "cut.png": whole[: len(whole) // 2],
        "text.jpg": b"hello",
        "no.gif": b"",
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        with refuses(InputError, f"{name} cannot be read", "image (", "save", "again") as told:
            read_image(file)
        assert "\n" not in str(told.value)
    with refuses(InputError, "gone.png cannot be read"):
        read_image(tmp_path / "gone.png")


def test_a_picture_with_too_many_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    file = saved(tmp_path, Image.new("L", (20, 20)))
    with refuses(InputError, "too many pixels", "downscale"):
        read_image(file)


@pytest.mark.parametrize("size", [0, -4, 2.5, "64", True, (8, 0), (8, 8, 3), [8, 8]])
def test_a_size_that_is_no_number_of_pixels_is_refused(size):
    with refuses(InputError, "size must be a whole number of pixels of at least 1"):
        check_size(size)


def test_a_file_of_another_format_is_refused_whatever_it_is_called(tmp_path, monkeypatch):
    """PostScript would be handed to Ghostscript, which runs it."""
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    run = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *given, **more: run.append(given))
    (tmp_path / "eps.png").write_bytes(eps)
    saved(tmp_path, Image.new("RGB", (4, 4)), "tiff.png", format="TIFF")
    for name in ("eps.png", "tiff.png"):
        with refuses(InputError, f"{name} cannot be read", "image"):
            read_image(tmp_path / name)
    assert run == []


def test_a_jpeg_with_several_pictures_is_read(tmp_path):
    flat = Image.new("RGB", (6, 4), (200, 100, 50))
    more = {"format": "MPO", "save_all": True, "append_images": [flat]}
    assert read_image(saved(tmp_path, flat, "a.jpg", **more)).shape == (4, 6, 3)
