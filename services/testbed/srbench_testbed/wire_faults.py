"""Faults on the way: statuses, connections, framing, pace, encodings."""

from __future__ import annotations

import gzip
import time
from email.utils import formatdate

import orjson

from srbench_testbed.exchange import CLOSE, HANG, KEEP, LENGTH, RESET, UNTIL_CLOSE, Exchange
from srbench_testbed.fault_types import Fault, Params
from srbench_testbed.reply import chunk_object, event

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"


def _replace(exchange: Exchange, status: int, body: bytes, content_type: str) -> None:
    kept = [(name, value) for name, value in exchange.headers if name == "x-request-id"]
    exchange.status, exchange.framing, exchange.trailers = status, LENGTH, []
    exchange.headers = [("content-type", content_type), *kept]
    exchange.parts = [(0.0, body)]


def _http_status(exchange: Exchange, params: Params) -> None:
    error = {"message": params.text("message"), "type": "testbed_fault", "code": params.text("code")}
    _replace(exchange, params.whole("status"), orjson.dumps({"error": error}), "application/json")
    after = params.number("retry_after_s")
    if after >= 0:
        exchange.set_header("retry-after", f"{after:g}")
    date_in = params.number("retry_after_date_s")
    if date_in >= 0:
        exchange.set_header("retry-after", formatdate(time.time() + date_in, usegmt=True))


def _html_page(exchange: Exchange, params: Params) -> None:
    _replace(exchange, params.whole("status"), _HTML, "text/html; charset=utf-8")


def _wrong_content_type(exchange: Exchange, params: Params) -> None:
    exchange.set_header("content-type", params.text("value"))


def _redirect(exchange: Exchange, params: Params) -> None:
    _replace(exchange, params.whole("status"), b"", "text/plain")
    exchange.set_header("location", params.text("location"))


def _cut(exchange: Exchange, after_parts: int, end: str) -> None:
    exchange.parts = exchange.parts[:after_parts]
    exchange.last_chunk, exchange.end = False, end


def _before_headers(exchange: Exchange, end: str) -> None:
    exchange.no_head, exchange.parts = True, []
    exchange.last_chunk, exchange.end = False, end


def _reset_before_headers(exchange: Exchange, _: Params) -> None:
    _before_headers(exchange, RESET)


def _close_before_headers(exchange: Exchange, _: Params) -> None:
    _before_headers(exchange, CLOSE)


def _hang_before_headers(exchange: Exchange, _: Params) -> None:
    _before_headers(exchange, HANG)


def _stall_before_headers(exchange: Exchange, params: Params) -> None:
    exchange.head_delay_s += params.number("seconds")


def _reset_mid_stream(exchange: Exchange, params: Params) -> None:
    _cut(exchange, params.whole("after_parts"), RESET)


def _close_mid_stream(exchange: Exchange, params: Params) -> None:
    _cut(exchange, params.whole("after_parts"), CLOSE)


def _hang_mid_stream(exchange: Exchange, params: Params) -> None:
    _cut(exchange, params.whole("after_parts"), HANG)


def _stall_mid_stream(exchange: Exchange, params: Params) -> None:
    index = min(params.whole("after_parts"), len(exchange.parts) - 1)
    delay, data = exchange.parts[index]
    exchange.parts[index] = (delay + params.number("seconds"), data)


def _truncated_chunk(exchange: Exchange, params: Params) -> None:
    """The size of a chunk is announced, half of it comes, and the connection closes."""
    _cut(exchange, params.whole("after_parts"), CLOSE)
    exchange.after = b'400\r\ndata: {"choices":[{"index":0,"delta":{"content":"half'


def _bad_chunk_size(exchange: Exchange, params: Params) -> None:
    _cut(exchange, params.whole("after_parts"), CLOSE)
    exchange.after = b"zz\r\nnot a chunk\r\n"


def _until_close(exchange: Exchange, _: Params) -> None:
    exchange.framing, exchange.end, exchange.trailers = UNTIL_CLOSE, CLOSE, []


def _short_body(exchange: Exchange, params: Params) -> None:
    body = exchange.body
    exchange.framing, exchange.trailers, exchange.end = LENGTH, [], CLOSE
    exchange.declared_length = len(body)
    exchange.parts = [(0.0, body[: max(0, len(body) - params.whole("missing"))])]


def _slow_drip(exchange: Exchange, params: Params) -> None:
    delay = params.number("delay_ms") / 1000
    size = max(1, params.whole("bytes"))
    body = exchange.body
    exchange.parts = [(delay, body[start : start + size]) for start in range(0, len(body), size)]


def _split_bytes(exchange: Exchange, params: Params) -> None:
    size = max(1, params.whole("bytes"))
    body = exchange.body
    exchange.parts = [(0.0, body[start : start + size]) for start in range(0, len(body), size)]


def _endless_stream(exchange: Exchange, params: Params) -> None:
    piece = event(chunk_object("endless", {"content": params.text("text")}))
    _cut(exchange, params.whole("after_parts"), KEEP)
    exchange.repeat = (params.number("delay_ms") / 1000, piece)


def _keepalive_only(exchange: Exchange, params: Params) -> None:
    _cut(exchange, params.whole("after_parts"), KEEP)
    exchange.repeat = (params.number("delay_ms") / 1000, b": keep-alive\n\n")


def _gzip_body(exchange: Exchange, params: Params) -> None:
    data = gzip.compress(exchange.body, mtime=0)
    exchange.parts = [(0.0, data[: len(data) - params.whole("missing")])]
    exchange.set_header("content-encoding", "gzip")


def _duplicate_headers(exchange: Exchange, _: Params) -> None:
    exchange.headers += [(name, value + "x") for name, value in exchange.headers if name != "x-request-id"]


def _interim_responses(exchange: Exchange, params: Params) -> None:
    exchange.interim = (
        b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n"
    ) * params.whole("times")


def _trailing_garbage(exchange: Exchange, params: Params) -> None:
    exchange.after, exchange.end = params.text("text").encode(), CLOSE


def _crlf(exchange: Exchange, _: Params) -> None:
    exchange.parts = [(delay, data.replace(b"\n", b"\r\n")) for delay, data in exchange.parts]


def _byte_order_mark(exchange: Exchange, _: Params) -> None:
    exchange.parts.insert(0, (0.0, b"\xef\xbb\xbf"))


def _comments(exchange: Exchange, _: Params) -> None:
    exchange.parts = [(delay, b": comment\nevent: message\nid: 1\n" + data) for delay, data in exchange.parts]


def _no_last_newline(exchange: Exchange, _: Params) -> None:
    delay, data = exchange.parts[-1]
    exchange.parts[-1] = (delay, data.rstrip(b"\n"))


def _huge_header(exchange: Exchange, params: Params) -> None:
    exchange.set_header("x-filler", "h" * params.whole("bytes"))


def _not_http(exchange: Exchange, _: Params) -> None:
    _before_headers(exchange, CLOSE)
    exchange.framing, exchange.after = UNTIL_CLOSE, b"SSH-2.0-OpenSSH_9.2\r\n"


_AFTER = {"after_parts": 4}
WIRE_FAULTS = (
    Fault(
        name="http_status",
        sentence="An HTTP status with a JSON error, and Retry-After in seconds or as a date when set.",
        defaults={
            "status": 500,
            "message": "the testbed was told to fail",
            "code": "testbed_fault",
            "retry_after_s": -1.0,
            "retry_after_date_s": -1.0,
        },
        on_wire=_http_status,
    ),
    Fault(
        name="html_page",
        sentence="A proxy's HTML page in place of the answer.",
        defaults={"status": 502},
        on_wire=_html_page,
    ),
    Fault(
        name="wrong_content_type",
        sentence="The right body under a wrong content type.",
        defaults={"value": "text/plain"},
        on_wire=_wrong_content_type,
    ),
    Fault(
        name="redirect",
        sentence="A redirect to another place.",
        defaults={"status": 307, "location": "http://127.0.0.1:1/elsewhere"},
        on_wire=_redirect,
    ),
    Fault(
        name="reset_before_headers",
        sentence="The connection is reset (RST) before anything is sent.",
        on_wire=_reset_before_headers,
    ),
    Fault(
        name="close_before_headers",
        sentence="The connection is closed before anything is sent.",
        on_wire=_close_before_headers,
    ),
    Fault(name="hang_before_headers", sentence="Nothing is ever sent.", on_wire=_hang_before_headers),
    Fault(
        name="stall_before_headers",
        sentence="The status line comes late.",
        defaults={"seconds": 1.0},
        on_wire=_stall_before_headers,
    ),
    Fault(
        name="reset_mid_stream",
        sentence="The connection is reset (RST) after some parts.",
        defaults=_AFTER,
        on_wire=_reset_mid_stream,
    ),
    Fault(
        name="close_mid_stream",
        sentence="The connection is closed after some parts, without an end.",
        defaults=_AFTER,
        on_wire=_close_mid_stream,
    ),
    Fault(
        name="hang_mid_stream",
        sentence="Nothing comes after some parts, for ever.",
        defaults=_AFTER,
        on_wire=_hang_mid_stream,
    ),
    Fault(
        name="stall_mid_stream",
        sentence="A pause in the middle of the answer.",
        defaults=_AFTER | {"seconds": 1.0},
        on_wire=_stall_mid_stream,
    ),
    Fault(
        name="truncated_chunk",
        sentence="A chunk is announced and half of it comes.",
        defaults=_AFTER,
        on_wire=_truncated_chunk,
    ),
    Fault(name="bad_chunk_size", sentence="A chunk size that is no number.", defaults=_AFTER, on_wire=_bad_chunk_size),
    Fault(
        name="until_close",
        sentence="A body without length or chunks that the end of the connection ends.",
        on_wire=_until_close,
    ),
    Fault(
        name="short_body", sentence="Fewer bytes than Content-Length says.", defaults={"missing": 20}, on_wire=_short_body
    ),
    Fault(
        name="slow_drip",
        sentence="A few bytes at a time with a delay before each.",
        defaults={"delay_ms": 20.0, "bytes": 1},
        on_wire=_slow_drip,
    ),
    Fault(
        name="split_bytes",
        sentence="The body in pieces of a few bytes, without delay.",
        defaults={"bytes": 1},
        on_wire=_split_bytes,
    ),
    Fault(
        name="endless_stream",
        sentence="Content that never ends.",
        defaults=_AFTER | {"delay_ms": 1.0, "text": " more"},
        on_wire=_endless_stream,
    ),
    Fault(
        name="keepalive_only",
        sentence="Comments for ever after some parts, so that bytes come and no answer.",
        defaults=_AFTER | {"delay_ms": 10.0},
        on_wire=_keepalive_only,
    ),
    Fault(
        name="gzip_body", sentence="A gzip body, cut by some bytes when asked.", defaults={"missing": 0}, on_wire=_gzip_body
    ),
    Fault(name="duplicate_headers", sentence="Every header twice, with another value.", on_wire=_duplicate_headers),
    Fault(
        name="interim_responses",
        sentence="1xx responses before the answer.",
        defaults={"times": 1},
        on_wire=_interim_responses,
    ),
    Fault(
        name="trailing_garbage",
        sentence="Bytes behind the end of the answer.",
        defaults={"text": "garbage after the end"},
        on_wire=_trailing_garbage,
    ),
    Fault(name="crlf", sentence="Events with CRLF line ends, which are allowed.", on_wire=_crlf),
    Fault(
        name="byte_order_mark",
        sentence="A byte order mark before the first event, which is allowed.",
        on_wire=_byte_order_mark,
    ),
    Fault(name="comments", sentence="Comments and other fields before each event, which are allowed.", on_wire=_comments),
    Fault(name="no_last_newline", sentence="The last event without its line ends.", on_wire=_no_last_newline),
    Fault(name="huge_header", sentence="One very long response header.", defaults={"bytes": 100_000}, on_wire=_huge_header),
    Fault(name="not_http", sentence="Another protocol answers.", on_wire=_not_http),
)
