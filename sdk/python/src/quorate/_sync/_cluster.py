# Written by scripts/generate_sync.py out of quorate._async; do not edit.
"""The cluster itself: its status, its members, backups, latches, and who may do what."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from quorate import types as wire
from quorate._backup import Tail
from quorate._lists import listed
from quorate._names import Key, name_fields
from quorate._requests import Seconds, compact, get, path, post, query, seconds, span
from quorate._sync._barrier import Latch, barrier_path
from quorate._sync._base import Base
from quorate._sync._core import Core
from quorate._sync._io import now, sleep
from quorate._sync._transport import Body, Line
from quorate._values import BrokenStreamError, MemberStatus, NodeMetrics, NodeStatus, SavedBackup
from quorate.errors import InvalidRequestError, NotFoundError, QuorateError

BACKUP_CONTENT_TYPE = "application/vnd.quorate.backup"
# How long nothing may come of a backup: a node that reads from a slow disk still sends something every second.
BACKUP_PATIENCE = 30.0
# How long one node may take to say how it is.
STATUS_TIMEOUT = 2.0
# Pause between two looks at nodes that start.
READY_PAUSE = 0.1
# A change of the members may take long at one node.
MEMBERS_ATTEMPT = 60.0


class Members:
    """The members of the cluster."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def get(self) -> wire.MembersAnswer:
        """All of them, as the leader knows them."""
        return self._core.fetch(wire.MembersAnswer, get("/v1/cluster/members", preference="leader"))

    def add(self, id: int, peer_addr: str, *, promote: bool = False, dry_run: bool = False, force: bool = False) -> wire.MembersChanged:
        """Takes in a node that was started and waits, as a learner; with `promote` it votes once it caught up, which is waited for."""
        return self._change("", {"id": id, "peer_addr": peer_addr, "promote": promote}, dry_run, force)

    def promote(self, id: int, *, dry_run: bool = False, force: bool = False) -> wire.MembersChanged:
        """Gives a learner that has caught up a vote."""
        return self._change(f"/{id}/promote", {}, dry_run, force)

    def demote(self, id: int, *, dry_run: bool = False, force: bool = False) -> wire.MembersChanged:
        """Takes the vote of a member, which stays a learner."""
        return self._change(f"/{id}/demote", {}, dry_run, force)

    def remove(self, id: int, *, dry_run: bool = False, force: bool = False) -> wire.MembersChanged:
        """Lets a member go."""
        return self._change(f"/{id}", None, dry_run, force, method="DELETE")

    def replace(self, old: int, new: int, *, dry_run: bool = False, force: bool = False) -> wire.MembersChanged:
        """Lets the learner `new` vote in place of `old`, which goes, in one step."""
        return self._change(f"/{old}/replace", {"with": new}, dry_run, force)

    def repair(self, id: int) -> wire.RepairAnswer:
        """Rebuilds the state of a member in quarantine from the leader's."""
        call = post(f"/v1/cluster/members/{id}/repair", None, intent="read")
        call.preference = "leader"
        return self._core.fetch(wire.RepairAnswer, call)

    def _change(self, rest: str, body: Any, dry_run: bool, force: bool, method: str = "POST") -> wire.MembersChanged:
        target = query(f"/v1/cluster/members{rest}", dry_run=dry_run, force=force)
        call = post(target, body, method=method)
        call.attempt = MEMBERS_ATTEMPT
        return self._core.fetch(wire.MembersChanged, call)


class Access:
    """Users, roles and tokens, and who changed what."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def who_am_i(self) -> wire.SelfAnswer:
        """Whom the cluster takes us for, and what we may do."""
        return self._core.fetch(wire.SelfAnswer, get("/v1/access/self"))

    def audit(self, key: Key, *, from_revision: int | None = None, limit: int | None = None, cursor: str | None = None) -> wire.AuditAnswer:
        """A page of who changed a key, who tried to, and when."""
        target = query("/v1/audit", key=key, from_=from_revision, limit=limit, cursor=cursor)
        return self._core.fetch(wire.AuditAnswer, get(target))

    def set_user(self, name: str, roles: Iterable[str], *, request_id: str | None = None) -> wire.UserAnswer:
        """Makes a user, or gives it other roles."""
        call = post(user_path(name), {"roles": listed(roles, str, "roles")}, method="PUT", request_id=request_id, about={"user": name})
        return self._core.fetch(wire.UserAnswer, call)

    def user(self, name: str) -> wire.UserAnswer | None:
        """A user; `None` if there is none."""
        try:
            return self._core.fetch(wire.UserAnswer, get(user_path(name), about={"user": name}))
        except NotFoundError:
            return None

    def users(self, *, limit: int | None = None, cursor: str | None = None) -> wire.UserList:
        """A page of all users."""
        return self._core.fetch(wire.UserList, get(query("/v1/access/users", limit=limit, cursor=cursor)))

    def remove_user(self, name: str, *, request_id: str | None = None) -> wire.UserRemoved:
        """Removes a user with its tokens."""
        call = post(user_path(name), None, method="DELETE", request_id=request_id, about={"user": name})
        return self._core.fetch(wire.UserRemoved, call)

    def set_role(self, name: str, grants: Iterable[wire.Grant], *, request_id: str | None = None) -> wire.RoleAnswer:
        """Makes a role, or lets it grant something else."""
        fields = [{"permission": one.permission, **name_fields(one.prefix, "prefix")} for one in listed(grants, wire.Grant, "grants")]
        call = post(role_path(name), {"grants": fields}, method="PUT", request_id=request_id, about={"role": name})
        return self._core.fetch(wire.RoleAnswer, call)

    def role(self, name: str) -> wire.RoleAnswer | None:
        """A role; `None` if there is none."""
        try:
            return self._core.fetch(wire.RoleAnswer, get(role_path(name), about={"role": name}))
        except NotFoundError:
            return None

    def roles(self, *, limit: int | None = None, cursor: str | None = None) -> wire.RoleList:
        """A page of all roles."""
        return self._core.fetch(wire.RoleList, get(query("/v1/access/roles", limit=limit, cursor=cursor)))

    def remove_role(self, name: str, *, request_id: str | None = None) -> wire.RoleRemoved:
        """Removes a role that no user has."""
        call = post(role_path(name), None, method="DELETE", request_id=request_id, about={"role": name})
        return self._core.fetch(wire.RoleRemoved, call)

    def create_token(
        self,
        user: str,
        *,
        expires_in: Seconds | None = None,
        note: str | None = None,
        request_id: str | None = None,
    ) -> wire.TokenCreated:
        """Gives a user a token; only this answer has it."""
        body = {"user": user, **compact(expires_in_ms=span(expires_in, "expires_in"), note=note)}
        return self._core.fetch(wire.TokenCreated, post("/v1/access/tokens", body, request_id=request_id))

    def tokens(self, *, limit: int | None = None, cursor: str | None = None) -> wire.TokenList:
        """A page of all tokens, without the secret in them."""
        return self._core.fetch(wire.TokenList, get(query("/v1/access/tokens", limit=limit, cursor=cursor)))

    def remove_token(self, id: str, *, request_id: str | None = None) -> wire.TokenRemoved:
        """Deletes a token: what is asked with it is refused at once."""
        target = path("/v1/access/tokens/", id, "the id of a token")
        return self._core.fetch(wire.TokenRemoved, post(target, None, method="DELETE", request_id=request_id))


def user_path(name: str) -> str:
    """The path of a user."""
    return path("/v1/access/users/", name, "the name of a user")


def role_path(name: str) -> str:
    """The path of a role."""
    return path("/v1/access/roles/", name, "the name of a role")


class Cluster(Base):
    """The part of a client that has to do with the cluster itself."""

    @property
    def members(self) -> Members:
        """The members of the cluster."""
        return Members(self._core)

    @property
    def access(self) -> Access:
        """Users, roles and tokens."""
        return Access(self._core)

    def latch(self, name: str) -> Latch:
        """The latch of this name."""
        return Latch(self._core, name)

    def barrier(self, name: str) -> wire.BarrierAnswer:
        """The barrier of this name as it is. To enter it: `session.barrier`."""
        return self._core.fetch(wire.BarrierAnswer, get(barrier_path(name), about={"barrier": name}))

    def status(self) -> wire.StatusAnswer:
        """The cluster as one node sees it."""
        return self._core.fetch(wire.StatusAnswer, get("/v1/cluster/status", preference="any"))

    def status_of_all(self) -> list[NodeStatus]:
        """The cluster as each endpoint sees it, in the order given."""
        return [self._status_of(node) for node in range(len(self._core.given))]

    def overview(self) -> list[MemberStatus]:
        """Every member as it sees the cluster, in order of ids.

        Members that no endpoint leads to are asked at the address that they advertise. One that does not answer is there with the reason,
        and so is an endpoint that nobody knows.
        """
        asked = self.status_of_all()
        views = [node.status for node in asked if node.status is not None]
        members = max(views, key=lambda view: view.applied_index).members if views else []
        answered = {view.node_id for view in views}
        missing = {member.client_addr: member.id for member in members if member.id not in answered}
        found = [
            MemberStatus(missing.get(node.address) if node.status is None else node.status.node_id, node.address, node.status, node.error)
            for node in asked
        ]
        for address in missing.keys() - {node.address for node in asked}:
            node = self._status_at(address)
            found.append(MemberStatus(missing[address], address, node.status, node.error))
        # Several endpoints may lead to one member.
        by_id = {node.address if node.id is None else node.id: node for node in reversed(found)}
        return sorted(by_id.values(), key=lambda node: (node.id is None, node.id or 0))

    def metrics_of_all(self) -> list[NodeMetrics]:
        """The numbers of each endpoint, in the order given: OpenMetrics text."""
        found: list[NodeMetrics] = []
        for line in self._core.lines[: len(self._core.given)]:
            try:
                answer = self._core.answer_from(line, get("/metrics"), STATUS_TIMEOUT)
                found.append(NodeMetrics(line.address, answer.body.decode(), None))
            except QuorateError as error:
                found.append(NodeMetrics(line.address, None, error))
        return found

    def digest(self) -> wire.DigestAnswer:
        """The digest of the state of one node."""
        return self._core.fetch(wire.DigestAnswer, get("/v1/cluster/digest", preference="any"))

    def faults(self) -> wire.FaultsAnswer:
        """Commands that faulted, and work that was put aside for that."""
        return self._core.fetch(wire.FaultsAnswer, get("/v1/cluster/faults"))

    def handle_faults(
        self, verb: Literal["retry", "drop", "forget"], *, work: str | None = None, request_id: str | None = None
    ) -> wire.FaultsReply:
        """Tries work that was put aside again, drops it, or forgets the commands that faulted."""
        call = post("/v1/cluster/faults", {"verb": verb, **compact(work=work)}, request_id=request_id)
        return self._core.fetch(wire.FaultsReply, call)

    def wait_ready(self, *, any: bool = False, timeout: Seconds = 30.0) -> list[NodeStatus]:
        """Waits until the nodes would answer a linearizable read: all of the endpoints, or with `any` one of them.

        Gives the last look; ready or not is for the caller to see.
        """
        until = now() + seconds(timeout, "timeout")
        while True:
            nodes = self.status_of_all()
            ready = sum(node.is_ready for node in nodes)
            if ready == len(nodes) or (any and ready > 0) or now() >= until:
                return nodes
            sleep(READY_PAUSE)

    def transfer_leader(self, to: int | None = None) -> wire.LeaderAnswer:
        """Hands leadership to a node, or to the best follower. Is not repeated once it may have happened."""
        call = post("/v1/cluster/leader", compact(to=to), intent="once")
        return self._core.fetch(wire.LeaderAnswer, call)

    def node_callers(self) -> wire.NodeCallersAnswer:
        """The limited resources of a node, and the accounts that hold most of each."""
        return self._core.fetch(wire.NodeCallersAnswer, get("/v1/node/callers", preference="any"))

    def limits(self) -> wire.LimitsAnswer:
        """How long keys and values may be, and all other limits."""
        return self._core.fetch(wire.LimitsAnswer, get("/v1/limits", preference="any"))

    def version(self) -> wire.VersionAnswer:
        """The version of a node."""
        return self._core.fetch(wire.VersionAnswer, get("/version", preference="any"))

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        local: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> SavedBackup:
        """A backup of the whole cluster into this file, which must not be there yet; it is only there once it is whole.

        Its checksum is compared where the extra `quorate[xxhash]` is installed; what is in it is checked by `quorate-node backup verify`.
        Is not tried again once it has begun.

        Args:
            path: The file.
            local: Of whatever the asked node has, without asking the others: also where there is no quorum.
            on_progress: Is told how many bytes are written, now and then.
        """
        target = fresh(path)
        call = get(query("/v1/cluster/backup", consistency="local" if local else None), preference="any")
        node, body = self._core.open(call, BACKUP_CONTENT_TYPE, now() + self._core.settings.timeout)
        part = target.with_name(f"{target.name}.part-{secrets.token_hex(4)}")
        try:
            return self._receive(node, body, part, target, on_progress)
        finally:
            body.close()
            part.unlink(missing_ok=True)

    def _receive(self, node: int, body: Body, part: Path, target: Path, on_progress: Callable[[int], None] | None) -> SavedBackup:
        tail = Tail()
        # Only its owner may read it: all of the cluster is in it.
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while True:
                try:
                    piece = body.next(BACKUP_PATIENCE)
                except BrokenStreamError as error:
                    detail = f"the backup broke off after {tail.bytes} bytes: {error}"
                    raise self._core.strange(node, detail) from error
                if piece is None:
                    break
                file.write(piece)
                tail.take(piece)
                if on_progress is not None:
                    on_progress(tail.bytes)
            file.flush()
            os.fsync(file.fileno())
        try:
            rows, revision = tail.end()
        except ValueError as error:
            raise self._core.strange(node, f"the backup is not whole: {error}") from error
        # Not a rename: it would replace a file that has come meanwhile.
        os.link(part, target)
        return SavedBackup(target, tail.bytes, rows, revision, tail.is_checked)

    def _status_of(self, node: int) -> NodeStatus:
        return self._status_by(self._core.lines[node])

    def _status_by(self, line: Line) -> NodeStatus:
        try:
            call = get("/v1/cluster/status")
            return NodeStatus(line.address, self._core.fetch_from(wire.StatusAnswer, line, call, STATUS_TIMEOUT), None)
        except QuorateError as error:
            return NodeStatus(line.address, None, error)

    def _status_at(self, address: str) -> NodeStatus:
        """The status of the member that advertises this address."""
        try:
            line = self._core.line_to(address)
        except QuorateError as error:
            return NodeStatus(address, None, error)
        status = self._status_by(line)
        line.close()
        return status


def fresh(path: str | os.PathLike[str]) -> Path:
    """A file that is not there yet."""
    target = Path(path)
    if target.exists():
        raise InvalidRequestError(f"{target} is there already; a backup replaces nothing")
    return target
