"""Operations by the stream: many in one request, each a line, each decided by itself.

Owns the way of the lines to nodes and back. What a line means is `_stream`'s.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable

from quorate._async._base import AsyncBase
from quorate._async._io import now, sleep
from quorate._patience import Patience
from quorate._requests import Call, Seconds, seconds
from quorate._stream import CONTENT_TYPE, Batches, Pending, Streamed
from quorate._values import BrokenStreamError
from quorate.errors import QuorateError
from quorate.ops import Op


class AsyncStreams(AsyncBase):
    """The part of a client that sends operations by the stream."""

    async def stream(self, ops: Iterable[Op], *, timeout: Seconds | None = None) -> AsyncIterator[Streamed]:
        """Does any number of operations, reads too, each by itself; gives what became of each as soon as it is known, in any order.

            async for done in client.stream(Op.put(f"orders/{n}", order) for n, order in enumerate(orders)):
                if done.error is not None:
                    print(done.op, done.error)

        Many go in one request, which saves what a request costs; they run beside each other, so two of the same key have no order. Writes
        are repeated under their request ids until they are decided. Operations are asked for as they are sent.

        Args:
            ops: The operations.
            timeout: Deadline of each instead of the client's own.
        """
        core = self._core
        time = core.settings.timeout if timeout is None else seconds(timeout, "timeout")
        batches = Batches(ops, core.settings.retry)
        sent, until, patience = batches.next(), now() + time, Patience()
        while sent:
            told = int(min(until - now(), core.settings.attempt_timeout) * 1000)
            body = b"".join(one.line(max(told, 1)) for one in sent)
            call = Call("POST", "/v1/ops", "write", "leader", body=body, content_type=CONTENT_TYPE, patience=patience)
            try:
                node, answers = await core.open(call, CONTENT_TYPE, until)
            except QuorateError as error:
                for one in sent:
                    yield one.failed(error)
                sent, until, patience = batches.next(), now() + time, Patience()
                continue
            pending = Pending(core.lines[node].address, sent, len(core.lines), random.random())
            try:
                while pending.waiting:
                    piece = await answers.next(core.settings.attempt_timeout)
                    if piece is None:
                        pending.broke("the stream ended")
                        break
                    for done in pending.feed(piece):
                        yield done
            except (BrokenStreamError, ValueError, KeyError) as error:
                pending.broke(str(error))
            finally:
                answers.close()
            if pending.again:
                core.node_failed(node)
            # Those that have no further try, and all of them once their time is up.
            pause = max((one.pause for one in pending.again if one.pause is not None), default=0.0)
            is_late = pause >= min(until - now(), patience.left())
            for one in pending.again:
                if is_late or one.pause is None:
                    yield one.gave_up()
            sent = [] if is_late else [one for one in pending.again if one.pause is not None]
            if sent:
                await sleep(pause)
            else:
                sent, until, patience = batches.next(), now() + time, Patience()
