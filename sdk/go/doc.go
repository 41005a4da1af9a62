// Package quorate is the client of Quorate, a replicated compare-and-swap store: documents with conditional writes, queries and
// transactions; locks with fences, elections, barriers and latches; timed tasks.
//
// # Where to begin
//
//   - reading and writing one key: [Client.Get], [Client.Put], [Client.Patch], and with values of a type [Get] and [Update]
//   - reading many: [Client.List], [Client.Find], [Client.Mirror]
//   - writing many: [Client.Txn], [Client.Bulk], [Client.UpdateWhere], [Client.DeleteWhere], [Client.Claim]
//   - hearing of changes: [Client.Watch]
//   - doing something in one place only: [Client.NewSession], then [Session.Lock] or [Session.Campaign]
//   - doing something later: [Client.Tasks]
//   - tests with real nodes: package quoratetest
//
// The last argument of a call are its options, a pointer to a struct; nil has the defaults.
//
// # Names
//
// A key, and what keys begin with, is any bytes, as a Go string is: one that is no UTF-8 is sent and shown as it is. Names of locks, elections,
// queues, collections and the like are UTF-8; what is not is refused before it is sent.
//
// # Times
//
// A time is a [time.Duration], sent in milliseconds, rounded up. The zero value is none, as each option says: a write without a time to live makes
// an entry that stays. One that is negative, such as what is left until a moment that has passed, fails with [ErrInvalidArgument], and nothing is
// sent.
//
// # Retries and deadlines
//
// Every write carries a request id, the same in all its tries. So it is repeated, at another node where it has to be, until it is decided, and
// takes effect at most once. The deadline of a call is that of its context, else Options.Timeout; a write is tried for five minutes at most,
// since nodes remember its id for fifteen. Both are over by whichever clock says so first, the monotonic one or that of the wall: a machine that
// was suspended does not repeat what it sent before.
//
// # Two kinds of locks
//
// [Session.Lock] takes a lock by its name: it is held as long as the session lives, its queue is fair, and its token fences off those who held
// it before. [Client.LockEntry] locks one entry for half a minute at most, while somebody thinks about what to write there.
//
// # Errors
//
// Each error of a call is an [*Error], or wraps one: Applied says whether the call took effect, and [Error.Retryable] whether it may succeed
// later. errors.Is finds a sentinel for each code, such as [ErrCasMismatch].
//
// # Inside
//
// Order of reading: client.go (settings, and the way of every call), kv.go, update.go, query.go, batch.go, collections.go, tasks.go, worker.go,
// watch.go, mirror.go, cluster.go, access.go, backup.go (what can be called), session.go, lock.go, latch.go (what is held; waiting for a place
// and giving it up are place.go), then the leaves: call.go (a call before it is sent), subject.go (what it is about), endpoints.go and
// discovery.go (which node), retry.go (whether again), clock.go (until when), lease.go and renewals.go (how long a session lives), fields.go
// (what an update would lose), credentials.go (who asks), transport.go and stream.go (how), errors.go (what it means when it fails). The types
// of the HTTP API are package api, which is generated.
package quorate
