"""A hub on this machine: the two requests that a download makes of it, over HTTP."""

import contextlib
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextlib.contextmanager
def serve(folder: Path, hub_id: str, revision: str, broken: str = ""):
    """Serve the files of `folder` as `hub_id` at `revision`; yield (address, paths asked for so far).

    The file `broken` goes out with one bit changed. As on the hub, the ETag is the SHA-256 of weights and Git's blob
    id of any other file.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(with_body=True)

        def do_HEAD(self):
            self.answer(with_body=False)

        def answer(self, with_body):
            asked.append(self.path)
            body, headers = self.content()
            self.send_response(404 if body is None else 200)
            for key, value in {**headers, "Content-Length": str(len(body or b""))}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_body and body:
                self.wfile.write(body)

        def content(self):
            if self.path.split("?")[0] == f"/api/models/{hub_id}/tree/{revision}":
                files = [
                    {
                        "type": "file",
                        "path": path.relative_to(folder).as_posix(),
                        "size": path.stat().st_size,
                        "oid": "0",
                    }
                    for path in sorted(folder.rglob("*"))
                    if path.is_file()
                ]
                return json.dumps(files).encode(), {"Content-Type": "application/json"}
            prefix = f"/{hub_id}/resolve/{revision}/"
            if not self.path.startswith(prefix) or not (file := folder / self.path.removeprefix(prefix)).is_file():
                return None, {"X-Error-Code": "RevisionNotFound"}
            body = file.read_bytes()
            if file.suffix in (".safetensors", ".bin"):
                etag = hashlib.sha256(body).hexdigest()
            else:
                etag = hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()
            if file.name == broken:
                body = body[:-1] + bytes([body[-1] ^ 1])
            return body, {"X-Repo-Commit": revision, "ETag": f'"{etag}"'}

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
