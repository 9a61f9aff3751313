"""A real model behind HTTP: RapidOCR reads pictures of digits on one core (`pip install rapidocr-onnxruntime aiohttp`).

    python examples/ocr/serve.py [--port 8001] [--hurry 4]

POST /read with a picture answers {"text": …}. One picture is read at a time, the others wait. With ``--hurry N``
pictures are shrunk to a third of their size while more than N are there: a stand-in for services that answer worse
under load (a smaller model, fewer steps, a shorter context).
"""

from __future__ import annotations

import argparse
import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
from aiohttp import web

HURRY = 0.3  # of the picture's size: of eight digits about half are then read wrongly


class Reader:
    """The model and its queue."""

    def __init__(self, hurry: int | None = None) -> None:
        self._model: Any = None
        self._hurry = hurry
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._waiting = 0

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=2**24)
        app.add_routes([web.post("/read", self.read)])
        app.on_cleanup.append(self._close)
        return app

    async def read(self, request: web.Request) -> web.Response:
        """One picture."""
        content = await request.read()
        self._waiting += 1
        hurried = self._hurry is not None and self._waiting > self._hurry
        try:
            text = await asyncio.get_running_loop().run_in_executor(self._pool, self.text, content, hurried)
        finally:
            self._waiting -= 1
        return web.json_response({"text": text})

    def text(self, content: bytes, hurried: bool = False) -> str:
        """What stands in a picture."""
        if self._model is None:
            from rapidocr_onnxruntime import RapidOCR

            self._model = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
        image = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
        if hurried:
            image = cv2.resize(image, None, fx=HURRY, fy=HURRY, interpolation=cv2.INTER_NEAREST)
        found, _ = self._model(image, use_det=False, use_cls=False, use_rec=True)
        return str(found[0][0]) if found else ""

    async def _close(self, app: web.Application) -> None:
        self._pool.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--hurry", type=int)
    asked = parser.parse_args()
    web.run_app(Reader(asked.hurry).app(), host="127.0.0.1", port=asked.port, access_log=None)
