//! Every bound of the server that is not part of the replicated state, each with its reason.
//!
//! Owns the fixed bounds and the defaults and ranges of the configurable ones. Never holds a bound that two nodes must
//! agree on: those are in `quorate_machine::limits`.

use quorate_machine::limits;

/// Default bound of a request body. A value of the largest size in base64 (4/3 of it, exactly 2 MiB) must fit in
/// `POST /v1/ops` together with its key and the rest of the JSON.
pub const BODY_BYTES_MAX_DEFAULT: usize = 2 * 1024 * 1024 + 64 * 1024;

/// Largest body of `POST /v1/bulk`: 10,000 operations of 1.6 KiB each. Larger than that of others, since the cost of a bulk
/// is that of its parts; loads of more are sent one bulk after the other.
pub const BULK_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What one operation of a bulk, or a whole transaction, may take in the log: what a command may, less its request id
/// and frame.
pub const ACTION_BYTES_MAX: usize = limits::COMMAND_BYTES_MAX - COMMAND_FRAME_BYTES;

/// See [`ACTION_BYTES_MAX`].
const COMMAND_FRAME_BYTES: usize = 512;

/// Once the answer of a bulk is so long, the rest of it shows no entries and no parts of them: 10,000 refusals may each
/// have an entry of the largest size to show. As much as its request may have.
pub const BULK_ANSWER_BYTES_SOFT_MAX: usize = BULK_BODY_BYTES_MAX;

/// Largest body limit that can be configured: a body lives in memory as a whole.
pub const BODY_BYTES_MAX_CEILING: usize = 64 * 1024 * 1024;

/// Most bytes of all bodies in flight on this node together; a request that needs more is answered with 429. With the
/// copies made on the way (the value out of its base64, the encoded command) bodies take up to three times as much.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The share of one account is one part in this many of [`BODIES_BYTES_MAX`], though never less than one body of the largest size. It
/// applies once half of all is taken.
pub const BODIES_SHARE: usize = 4;

/// A body up to this length needs no room among [`BODIES_BYTES_MAX`]: the renewal of a session never finds it full. Small bodies are bounded
/// by the places of the classes and of [`ARRIVING_MAX`], some hundred MiB if all were as long.
pub const SMALL_BODY_BYTES: usize = 4 * 1024;

/// Requests whose body is still on its way: each is a part of a connection, and some kilobytes. One account has a quarter of
/// them once half are taken.
pub const ARRIVING_MAX: usize = 32_768;

/// Delay after which a body counts as on its way. A body right behind its head needs no place: bodies of strangers that do not come, however
/// many, never keep it out.
pub const ARRIVING_GRACE_MS: u64 = 100;

/// Longest request head. A key of the largest size, all of it percent-encoded, takes 12 KiB.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Most query parameters of a request. Each is compared with those before it, so that none is given twice; thousands of them would
/// take a request thread tens of milliseconds.
pub const QUERY_PARAMETERS_MAX: usize = 64;

/// Longest `X-Request-Id` that is echoed; a longer one is replaced by one of our own.
pub const ECHO_BYTES_MAX: usize = 128;

/// Longest wait for this node to apply a write whose entry is to be shown. A node that is further behind must not keep
/// the news that the write took effect; the answer then comes without the entry.
pub const REPRESENTATION_WAIT_MS: u64 = 500;

/// Entries of a listing page where the request does not say.
pub const LIST_ENTRIES_DEFAULT: usize = 100;

/// Most entries of a listing page: a page is built in memory, and held while a slow client reads it.
pub const LIST_ENTRIES_MAX: usize = 1_000;

/// Keys and values of a listing page stop here, for the same reason.
pub const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of events from which on a watch that takes them in fragments gets another.
pub const ETCD_FRAGMENT_BYTES: usize = 2 * 1024 * 1024;

/// Audit groups dropped by one command: bounds the time that one apply takes.
pub const COMPACT_GROUPS: u32 = 64;

/// Longest message over etcd's protocol, which is what etcd takes: a request, and room for what stands around it.
pub const ETCD_MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Longest message of a stream over etcd's protocol: two keys of the largest size, what a watch asks for beside them, and some.
pub const ETCD_STREAM_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Most fields of one message over etcd's protocol, each as often as it comes: a transaction with as many operations as it may have has half
/// as many. Decoding them takes some milliseconds.
pub const ETCD_FIELDS_MAX: usize = 32 * ETCD_ELEMENTS_MAX;

/// Most elements of all lists in one message over etcd's protocol: as many as a transaction may have operations, which are the only ones that
/// are ever many. Two bytes of an empty one become a hundred once it is decoded.
pub const ETCD_ELEMENTS_MAX: usize = limits::TXN_STEPS_MAX;

/// Most bytes of keys and values in one answer to a range over etcd's protocol, which has no pages of its own accord.
pub const ETCD_RANGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Entries that one find or count looks at. On the reference machine one with a document of 300 bytes takes 1 µs, and 4 to 5 µs
/// in the past where each was overwritten since: 10 and 50 ms of one core. Without an order the caller goes on with the cursor.
pub const FIND_ENTRIES_MAX: u64 = 10_000;

/// Bytes of keys and values that one find or count looks at, and of the steps that it takes to judge them then, for the same reason: large
/// documents take 20 ms to parse altogether. Also bounds what an ordered find keeps in memory.
pub const FIND_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most tasks that one page looks at, those in another state too.
pub const TASK_ROWS_MAX: usize = 10_000;

/// Most fields that a find orders by: each is looked up and compared for each entry.
pub const FIND_ORDER_FIELDS_MAX: usize = 8;

/// Most fields that a find shows; whoever wants more wants the whole document.
pub const FIND_FIELDS_MAX: usize = 64;

/// Listings, counts and finds at the same time. They run on blocking threads; more of them would only fight for the same disk and
/// cores.
pub const SCANS_MAX: usize = 8;

/// Dry runs, transactions that only read, and long bodies that are read, at the same time, for the same reason.
pub const EVALUATIONS_MAX: usize = 4;

/// Changes of all that matches, and claims, that one node has in the log at the same time. Each is applied on all nodes and
/// looks at up to 10,000 entries there, up to 50 ms, and nothing else is applied meanwhile: those of three nodes hold a renewal up
/// by 150 ms at worst. More of them would not be done sooner. Others wait in a line in which each account has one of either. Those that
/// are known to be dear take no such place: they have a queue of their own, which lets one through at a time.
pub const LOG_SCANS_MAX: usize = 1;

/// Requests for sessions, locks and the like at once on this node. Bounds the memory that they take, as do the next three;
/// bodies have [`BODIES_BYTES_MAX`]. One more is answered with 429.
pub const COORDINATION_MAX: usize = 16_384;

/// Operations on keys at once. As many as fill sixteen entries of the log; they are done in about a second.
pub const POINT_OPS_MAX: usize = 16_384;

/// What scans at once may cost together: 256 finds, of which all but [`SCANS_MAX`] wait. They are done in a second or two.
pub const SCAN_COST_MAX: usize = 4_096;

/// What a request costs that looks at so many entries as it needs, up to [`FIND_ENTRIES_MAX`].
pub const FIND_COST: usize = 16;

/// Steps of a command that cost its account as much as one operation: about what a plain write takes on each node.
pub const STEPS_FOR_OP: u64 = 4_096;

/// Least part of the bound of a batch that makes a command dear: as much work as a large one, some milliseconds on each node.
pub const DEAR_BYTES: usize = limits::BATCH_EFFECT_BYTES_MAX / 4;

/// Least cost of a command that is known to take [`DEAR_BYTES`] or more: that of as many steps.
pub const DEAR_OPS: u64 = (DEAR_BYTES / limits::STEP_BYTES) as u64 / STEPS_FOR_OP;

/// Entries of a page that cost as much as one operation.
pub const ENTRIES_FOR_COST: usize = 100;

/// Requests that wait for a change, a lock or a task: each is a connection, or a part of one, and some kilobytes.
pub const WAITING_MAX: usize = 16_384;

/// Bytes of bodies that requests for coordination may take beyond [`BODIES_BYTES_MAX`], and beyond the share of their account.
pub const COORDINATION_BODIES_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of long answers that were made and that their readers have not taken. Those under way come on top.
pub const ANSWERS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Part of [`ANSWERS_BYTES_MAX`] that one account may hold: whoever reads slowly on purpose leaves the rest to others.
pub const ANSWERS_SHARE: usize = 4;

/// Bytes a second that a reader takes at least of a long answer, once it had the time in which it may take nothing. Slower ones would
/// hold the memory of answers for hours.
pub const ANSWER_RATE_MIN: u64 = 64 * 1024;

/// How often a stream looks for room for its next answers while there is none, milliseconds.
pub const ANSWER_ROOM_LOOK_MS: u64 = 50;

/// How often the account that holds most is asked for room while all of it is held, milliseconds.
pub const ANSWER_ROOM_WANTED_MS: u64 = 250;

/// Least time that its peers have to take the bytes on their way to them, milliseconds: the taking has to be noticed here, too.
pub const ANSWER_ROOM_GRACE_MS: u64 = 1_000;

/// Bytes a second that such a peer takes beyond that, while others are refused.
pub const ANSWER_ROOM_RATE_MIN: u64 = 8 * 1024 * 1024;

/// Values that commands under way may show because they were asked for, of one account. Beyond it they wait before they are decided: a
/// command that has taken effect is answered, even if nobody reads the answer.
pub const ASKED_VALUES_OF_ACCOUNT_MAX: usize = 128;

/// The same of all accounts.
pub const ASKED_VALUES_OF_ALL_MAX: usize = 4 * ASKED_VALUES_OF_ACCOUNT_MAX;

/// An answer from this length on is a long one. Shorter ones are bounded by the number of connections; those that are made while they are
/// sent count from their first byte.
pub const LONG_ANSWER_BYTES: u64 = 32 * 1024;

/// What each piece of an answer that waits for its reader takes beside its bytes, about.
pub const HELD_FRAME_BYTES: usize = 256;

/// Accounts that are told apart at a time, where they are bounded: about a megabyte.
pub const ACCOUNTS_MAX: usize = 10_000;

/// How often idle accounts are looked for while the table is full, nanoseconds: a look takes a tenth of a millisecond.
pub const ACCOUNTS_SWEEP_NANOS: u64 = 50_000_000;

/// How long a refusal is kept back from an account that has taken all it may: until there is likely to be room, within bounds. A
/// thousand clients that ask again at once are told a thousand times a second, which costs some hundredths of a core.
pub const REFUSAL_PAUSE_MS_MIN: u64 = 50;
/// See [`REFUSAL_PAUSE_MS_MIN`].
pub const REFUSAL_PAUSE_MS_MAX: u64 = 1_000;

/// Most refusals of one account that are kept back at a time: a quarter of those that may wait.
pub const KEPT_BACK_MAX: usize = WAITING_MAX / 4;

/// Scrapes of the metrics at the same time; the next one waits. Each takes some milliseconds of a core.
pub const SCRAPES_MAX: usize = 2;

/// Operations under way in one stream; no further line is read until one of them is answered. As
/// many as a leader puts into one log entry at most, so that a single stream can fill one.
pub const STREAM_OPS_MAX: usize = 1_024;

/// Requests on keys that are at work before callers take turns. So many keep the log busy; with more, whoever has few requests would wait
/// for those of who has many.
pub const POINT_TURNS: usize = 64;

/// The same of scans, of which [`SCANS_MAX`] are looked at at a time.
pub const SCAN_TURNS: usize = 32;

/// Requests with large bodies that are at work before callers take turns: enough to keep one core busy while another goes through the log.
pub const LARGE_TURNS: usize = 4;

/// From so many bytes on a body is large: what it asks for goes through the log by itself.
pub const LARGE_BODY_BYTES: usize = 16 * 1024;

/// Requests on keys or scans that an account may have at work however many others there are.
pub const TURNS_MIN: usize = 4;

/// Operations that the streams of one account have under way together, and those of all streams: a part of the class is left to
/// others. A peer that does not read its answers keeps its operations under way, since they are looked after where the answers are sent.
pub const STREAM_OPS_OF_ACCOUNT_MAX: usize = POINT_OPS_MAX / 4;
/// Operations of streams of one account that may show values, from before they are decided until their answers are written. Those of a
/// stream that is not read stay there with their values, which nothing else counts: 192 MiB at most.
pub const STREAM_VALUES_OF_ACCOUNT_MAX: usize = 128;

/// Writes of streams of one account that are looked after where the answers of their stream are sent, though they may be refused, and a refusal
/// shows the entry as it is. Beyond it each has a task of its own, which keeps of long entries no more than there is room for.
pub const STREAM_REFUSALS_OF_ACCOUNT_MAX: usize = 128;

/// See [`STREAM_OPS_OF_ACCOUNT_MAX`].
pub const STREAM_OPS_OF_ALL_MAX: usize = POINT_OPS_MAX / 4 * 3;

/// Operations that any stream may have under way, whatever others have.
pub const STREAM_OPS_MIN: usize = 1;

/// Answers of a stream are sent on once they are this long together, and before more is read. With one answer of the largest
/// size on top this is what a stream holds for a peer that does not read.
pub const STREAM_FRAME_BYTES: usize = 64 * 1024;

/// Pieces of its request that a stream takes before it lets others have the thread.
pub const STREAM_PIECES_MAX: usize = 16;

/// Watches at a time on this node; one more is answered with 429. Each takes a connection, or a part of one, and some kilobytes.
pub const WATCHES_MAX: usize = 20_000;

/// A watch sends what it has once it is this long together, and reads as much from disk in one step. With one event of the
/// largest size on top this is what a watch holds for a peer that does not read.
pub const WATCH_CHUNK_BYTES: usize = 64 * 1024;

/// Changes of any keys that a watch looks at in one step on disk: those of about as many transactions of the largest size.
pub const WATCH_LOOKED_AT_MAX: usize = 4_096;

/// Bytes of values that a watch holds against its criteria before it lets others have the thread.
pub const WATCH_JUDGED_BYTES: usize = 256 * 1024;

/// Steps that a watch takes, in memory or on disk, before it lets others have the thread.
pub const WATCH_STEPS_MAX: usize = 16;

/// Watches that read from disk at the same time, on blocking threads: they have time, and listings have a right to the disk too.
pub const WATCH_READS_MAX: usize = 4;

/// A watch that has sent nothing for so long says how far it is, where the request does not say.
pub const HEARTBEAT_MS_DEFAULT: u64 = 5_000;

/// Most often. A heartbeat costs about as much as an event.
pub const HEARTBEAT_MS_MIN: u64 = 500;

/// Least often: proxies cut connections that are silent for a minute.
pub const HEARTBEAT_MS_MAX: u64 = 60_000;

/// Backups given out at the same time: each walks over all of the state.
pub const BACKUPS_MAX: usize = 2;

/// Most bytes of a backup that a node gives out in a second while its cluster changes little: a gigabyte in eight seconds. At full
/// speed the walk would take a whole core for as long as it lasts.
pub const BACKUP_BYTES_PER_SECOND: u64 = 128 * 1024 * 1024;

/// Bytes a second of a backup while the state changes much. What else a backup does to writes (disk, caches, the core it shares) goes with its pace.
pub const BACKUP_BYTES_PER_SECOND_BUSY: u64 = 32 * 1024 * 1024;

/// Changes in a second that are much.
pub const BACKUP_BUSY_CHANGES_PER_SECOND: u64 = 500;

/// A piece of a backup on its way to the connection.
pub const BACKUP_PIECE_BYTES: usize = 128 * 1024;

/// Pieces that wait for a slow reader; with the block under way this is what a backup holds.
pub const BACKUP_PIECES_MAX: usize = 8;

/// How often a watch looks whether it has to end.
pub const WATCH_LOOK_MS: u64 = 5_000;

/// A watch ends once its node has heard no leader for so long: others may go on without this node. An election takes less than
/// a second.
pub const WATCH_SILENCE_MS_MAX: u64 = 10_000;

/// Longest `wait_ms` of a long poll: proxies cut idle requests at a minute.
pub const WAIT_MS_MAX: u64 = 60_000;

/// How long a request for a lock waits that names no other time: below what proxies give up after, a minute as a rule.
pub const POLL_MS_DEFAULT: u64 = 50_000;

/// For how long a place in a queue, or what it was given, is kept for who hung up while waiting. Others wait behind it meanwhile; a client
/// that goes on at another node may find some of them dead before, and gives each of them up to three seconds.
pub const HUNG_UP_MS: u64 = 10_000;

/// For how long it is tried to give it up where the cluster has no leader. Then it ends with its time, or with its session.
pub const HUNG_UP_TRIED_MS: u64 = 300_000;

/// Time to live of a session that names none: some failovers.
pub const SESSION_TTL_MS_DEFAULT: u64 = 10_000;

/// Most holders, waiters, and things of one kind that hang on a session, in one answer: who looks sees the first, and counts.
pub const PARTIES_SHOWN_MAX: usize = 100;

/// Most places counted before one in a queue. A place so far behind tells nothing more.
pub const PLACES_COUNTED_MAX: usize = 1_000;

/// Streams on this node that observe an election: each has a place among those who wait for a change, which are bounded too.
pub const OBSERVERS_MAX: usize = 10_000;

/// Most changes of a leader that are read at a time for one observer: with the longest values some MiB.
pub const OBSERVED_CHANGES_MAX: usize = 32;

/// Lines of slow requests in one second: enough to see what is going on, too few to hurt.
pub const SLOW_LINES_A_SECOND: u64 = 10;

/// Most characters of a path in such a line, before they are escaped. The beginning of a key says whose it is.
pub const SLOW_PATH_CHARS_MAX: usize = 96;

/// Batches that one page of an audit trail looks at: some ten milliseconds.
pub const AUDIT_GROUPS_MAX: usize = 10_000;

/// What the batches have together that one page of an audit trail looks at: some forty thousand lines, decoded in some ten milliseconds.
pub const AUDIT_BYTES_MAX: usize = 4 << 20;

/// How long `/readyz` waits for its read.
pub const READY_TIMEOUT_MS: u64 = 1_000;

/// What an HTTP/1.1 connection buffers of answers that its peer does not read, but for one piece, and reads ahead of requests. hyper's own
/// bound is six times as much.
pub const H1_BUFFER_BYTES: usize = 64 * 1024;

/// Streams of one HTTP/2 connection at a time.
pub const H2_STREAMS_MAX: u32 = 256;

/// Streams that a peer may open and reset before the connection is ended (CVE-2023-44487, "rapid reset").
pub const H2_RESETS_PENDING_MAX: usize = 20;

/// Streams reset by us because of the peer's faults before the connection is ended.
pub const H2_LOCAL_RESETS_MAX: usize = 128;

/// Largest window of one HTTP/2 stream: about the largest value, so that a put does not wait for a window update. A connection with a
/// smaller window than the largest has as much smaller ones for its streams.
pub const H2_STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;

/// Largest window of an HTTP/2 connection: bounds what a peer can make us hold in unread bodies.
pub const H2_CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Smallest window of an HTTP/2 connection: what the protocol begins with. With all connections that there may be, 256 MiB.
pub const H2_CONNECTION_WINDOW_BYTES_MIN: u32 = 65_535;

/// Bytes that the windows of all HTTP/2 connections have together beyond the smallest of each.
pub const H2_WINDOWS_BYTES: u64 = 256 * 1024 * 1024;

/// Answer bytes buffered for each HTTP/2 stream that its peer does not read.
pub const H2_SEND_BUFFER_BYTES: usize = 512 * 1024;

/// TLS handshakes with clients under way at a time: each is a few round trips and one signature, and has tens of kilobytes meanwhile.
pub const HANDSHAKES_MAX: usize = 256;

/// Those of one address: strangers who do not go on with theirs do not keep those of others waiting.
pub const ADDRESS_HANDSHAKES_MAX: usize = 64;

/// A handshake that has gone on for that long makes room where another one waits: an honest one takes a few round trips. It may take as long
/// as a head where nobody waits.
pub const HANDSHAKE_PATIENCE_MS: u64 = 1_000;

/// A handshake that waits looks for room this often.
pub const HANDSHAKE_LOOK_MS: u64 = 100;

/// Seconds between pings on a quiet HTTP/2 connection, and how long an answer may take: finds dead peers.
pub const H2_PING_SECONDS: u64 = 20;

/// Extra lease for a body beyond its deadline: one second for each this many bytes that came. A body slower than this
/// is cut.
pub const BODY_RATE_MIN_DEFAULT: u64 = 16 * 1024;

/// Bytes of a connection that the kernel takes before others get the thread. It copies them while the thread waits, and a socket between two
/// processes of one machine takes megabytes at once.
pub const WRITE_BURST_BYTES: usize = 128 * 1024;

/// Connections that the system accepts for us while we are busy: after a fail-over all clients come at once, and one
/// that finds the queue full waits a second before it tries again.
pub const BACKLOG: u32 = 4_096;

/// Bytes that the system keeps of what a peer does not read, beside what is on its way to it.
pub const UNSENT_BYTES: libc::c_int = 128 * 1024;

/// How long, and for how many bytes, we go on reading from a peer after an answer that ends the connection early. A socket
/// closed with unread bytes is reset, and the reset may overtake the answer.
pub const LINGER_MS: u64 = 1_000;
/// See [`LINGER_MS`].
pub const LINGER_BYTES: usize = 4 * 1024 * 1024;

/// A resource that refuses has a line in the log this often at most.
pub const REFUSALS_LINE_SECONDS: u64 = 10;

/// Accounts that are named to operators for each resource.
pub const CALLERS_TOLD_MAX: usize = 20;

/// What a client is told in `Retry-After` where nothing better is known: elections take well under a second.
pub const RETRY_AFTER_SECONDS: u64 = 1;

/// Bounds of what a client is told where a class is full, milliseconds. Even where it is emptied at once there are others who wait.
pub const RETRY_AFTER_MS_MIN: u64 = 100;
/// See [`RETRY_AFTER_MS_MIN`].
pub const RETRY_AFTER_MS_MAX: u64 = 30_000;

const _: () = assert!(BODY_BYTES_MAX_DEFAULT > limits::VALUE_BYTES_MAX / 3 * 4 + 4 * limits::KEY_BYTES_MAX);
const _: () = assert!(ETCD_MESSAGE_BYTES_MAX > limits::COMMAND_BYTES_MAX);
const _: () = assert!(BODIES_BYTES_MAX >= 4 * BODY_BYTES_MAX_CEILING);
const _: () = assert!(BULK_BODY_BYTES_MAX <= BODY_BYTES_MAX_CEILING);
const _: () = assert!(ETCD_STREAM_MESSAGE_BYTES_MAX > 4 * limits::KEY_BYTES_MAX);
const _: () = assert!(ACTION_BYTES_MAX > limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX);
const _: () = assert!(COMMAND_FRAME_BYTES >= limits::REQUEST_ID_BYTES_MAX + limits::REQUEST_PART_BYTES_MAX + 64);
const _: () = assert!(H1_BUFFER_BYTES > HEAD_BYTES_MAX);
const _: () = assert!(HEAD_BYTES_MAX > 3 * limits::KEY_BYTES_MAX + 4 * 1024);
const _: () = assert!(LIST_BYTES_MAX > limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX);
const _: () = assert!(FIND_BYTES_MAX > LIST_BYTES_MAX);
const _: () = assert!(H2_STREAM_WINDOW_BYTES as usize > limits::VALUE_BYTES_MAX);
const _: () = assert!(STREAM_OPS_MAX < POINT_OPS_MAX);
const _: () = assert!(FIND_COST * SCANS_MAX < SCAN_COST_MAX);
const _: () = assert!(STREAM_OPS_MAX >= limits::BATCH_COMMANDS_MAX);
