"""Pictures of eight digits whose right reading is known, and the requests that ask for them.

    python examples/ocr/digits.py FOLDER [--count 200] [--noise 40]

Writes FOLDER/digits.jsonl, one request a line with its expected answer, and the pictures beside it. Noise is the
standard deviation of what is added to every pixel of 0 to 255: the knob of how well they can be read.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

DIGITS = 8
SIZE = (320, 48)


def picture(text: str, noise: float, rng: np.random.Generator) -> bytes:
    """The text in black on white with noise, as PNG."""
    image = Image.new("L", SIZE, 255)
    ImageDraw.Draw(image).text((16, 4), text, font=ImageFont.load_default(size=36), fill=0)
    pixels = np.asarray(image, dtype=np.float64) + rng.normal(0.0, noise, size=(SIZE[1], SIZE[0]))
    buffer = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


def pictures(count: int, noise: float, seed: int = 1) -> list[tuple[str, bytes]]:
    """So many readings with their pictures."""
    rng = np.random.default_rng(seed)
    texts = ["".join(map(str, rng.integers(0, 10, size=DIGITS))) for _ in range(count)]
    return [(text, picture(text, noise, rng)) for text in texts]


def write(folder: Path, count: int, noise: float) -> None:
    """The pictures and the file of requests."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (text, image) in enumerate(pictures(count, noise)):
        name = f"digits-{number:04d}.png"
        (folder / name).write_bytes(image)
        lines.append(json.dumps({"file": name, "content_type": "image/png", "expected": text}))
    (folder / "digits.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--noise", type=float, default=40.0)
    asked = parser.parse_args()
    write(asked.folder, asked.count, asked.noise)
