//! Every bound of the store, with its reason. Nothing here is tunable at run time: a bound that two nodes
//! disagreed on would make them apply the same log differently.

/// Longest key. Keys are index material: they are held in memory by caches, watches and listings.
pub const KEY_BYTES_MAX: usize = 4_096;

/// Largest value. A Raft entry, a peer frame and a snapshot chunk must each be able to hold one.
pub const VALUE_BYTES_MAX: usize = 1_536 * 1024;

/// Most tokens in the list of one condition. A writer has seen one version of an entry, a cache that asks for it a few;
/// each command carries its list through the log.
pub const EXPECT_TOKENS_MAX: usize = 16;

/// Most writes in one command for many: as many as a batch may have commands, and for the same reason.
pub const COMMAND_WRITES_MAX: usize = BATCH_COMMANDS_MAX;

/// Most checks and steps of a transaction, those of nested ones too: nothing else is applied meanwhile.
pub const TXN_STEPS_MAX: usize = 1_024;

/// Deepest transactions in each other. More is not for people.
pub const TXN_DEPTH_MAX: usize = 4;

/// Most bytes that one transaction may read, write and answer. It is all or nothing, so unlike a batch it cannot be cut:
/// all that it writes is in memory at once.
pub const TXN_EFFECT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The number of values of the largest size that an answer can show: [`TXN_EFFECT_BYTES_MAX`] and [`VALUE_BYTES_MAX`].
pub const ASKED_VALUES_MAX: usize = TXN_EFFECT_BYTES_MAX.div_ceil(VALUE_BYTES_MAX);

/// Most bytes that commands evaluated together without effect may read, write and answer: what they would write is held in
/// memory until the last one is answered.
pub const REHEARSAL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most entries that one command looks at to find what it is about: bounds the time one apply takes.
pub const COMMAND_ENTRIES_MAX: u64 = 10_000;

/// Most entries that one command about what is found changes.
pub const WHERE_LIMIT_MAX: u32 = 1_000;

/// Most entries shown that such a command did not change.
pub const WHERE_ITEMS_MAX: usize = 100;

/// Most entries that one claim locks: each answer carries their values, and whoever claims more than it works off in the
/// time of a lock only keeps others from it.
pub const CLAIM_LIMIT_MAX: u32 = 100;

/// Most entries that one claim passes over because its patch does not fit them.
pub const CLAIM_REFUSED_MAX: usize = 16;

/// What looking at an entry takes of the bound of a batch beside its value: finding its rows costs that much work.
pub const LOOK_BYTES: usize = 512;

/// What granting a lock takes of the bound of a batch beside its rows, some of which are looked for first: all who may wait
/// for one lock are granted it in one batch, and not many more.
pub const GRANT_BYTES: usize = 8 * LOOK_BYTES;

/// Charge of an expired entry or lock against the bound of a batch, in addition to the rows written. Expiry reads several rows first,
/// most of them from disk.
pub const EXPIRY_BYTES: usize = 8 * LOOK_BYTES;

/// Charge of the bound of a transaction for each removed entry of a range, beside its rows: it is as much work as a dozen looks, and a few bytes
/// name any number of entries. A transaction therefore removes about 2,300 entries of ranges at most.
pub const REMOVAL_BYTES: usize = 12 * LOOK_BYTES;

/// Most numbers drawn at once: a mistake does not use up a sequence.
pub const NUMBERS_MAX: u32 = 1_000_000;

/// Longest request id that a client may give. A UUID has 36; the rest is room for a caller's own prefix.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

/// What the id of a part of a request may have beside the request's: [`crate::types::RequestId::of_part`].
pub const REQUEST_PART_BYTES_MAX: usize = 8;

/// Most bytes of encoded commands that one batch gathers before it is closed. One command may exceed it alone.
pub const BATCH_BYTES_SOFT_MAX: usize = 256 * 1024;

/// Most commands in one batch: bounds the time one apply holds up reads waiting for it.
pub const BATCH_COMMANDS_MAX: usize = 1_024;

/// Largest encoded command: a value, a key and room for the rest.
pub const COMMAND_BYTES_MAX: usize = VALUE_BYTES_MAX + KEY_BYTES_MAX + 4_096;

/// Largest encoded batch, hence log entry.
pub const BATCH_BYTES_MAX: usize = BATCH_BYTES_SOFT_MAX + COMMAND_BYTES_MAX + 8 * BATCH_COMMANDS_MAX + 64;

/// Once the commands of a batch have taken this many bytes (entries read, steps taken, values answered, rows written with their keys, lines
/// of audit), the rest of it is [deferred](crate::types::Outcome::Deferred): a few hundred bytes of command can refer to a value of the largest
/// size, so the bounds of a batch do not bound what applying it takes. The last command may exceed it, by about four
/// values: it reads one, moves it to the history, writes another and shows the first; and by all the steps that it may take.
pub const BATCH_EFFECT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes that a step takes of the bound of a batch. [`crate::document::Steps`] says what counts as how many.
pub const STEP_BYTES: usize = 2;

/// Most steps that one command takes to judge its conditions and to change documents; each write of a bulk has as many, and each entry that
/// a find, a claim or an `update_where` looks at. A step is about 5 ns, so this is about 20 ms, for which nothing else is applied on any
/// node: leaders are missed after some tenths of a second. It is also all that a batch may take. A list of the shortest values that fills a
/// document takes nearly all of it to be parsed, and two steps for each element that a condition looks at. The steps to take an entry
/// out of its indexes count, but are never refused: mostly they are less than half as many, since an entry is gone through once for all of them.
pub const COMMAND_STEPS_MAX: u64 = (BATCH_EFFECT_BYTES_MAX / STEP_BYTES) as u64;

/// Largest row: decoding takes what a record claims, and this is well below what it may. The largest rows are audit groups,
/// whose lines count towards [`BATCH_EFFECT_BYTES_MAX`], so no command comes near it.
pub const ROW_BYTES_MAX: usize = 4 * BATCH_EFFECT_BYTES_MAX;

/// Most bytes of the details of refusals (conditions that were not met, rules that were broken) that are kept under one request
/// id. Where there are more, none are: a retry is told the same, but not why in detail.
pub const KEPT_DETAILS_MAX: usize = 64 * 1024;

/// Most bytes of what an outcome lists (ranges of a transaction, entries that were not changed) that are kept under one request id, beside
/// as many as the command has. A longer list is not kept: a retry learns that the command was done, and reads again what there is. Else a
/// few bytes, sent again and again, would fill the disks with lists of the same keys.
pub const KEPT_LISTED_MAX: usize = 16 * 1024;

/// Bytes reckoned for each entry of such a list beside its key.
pub const LISTED_ENTRY_BYTES: usize = 32;

/// Width of one bucket of the request table. An outcome is kept for at least one bucket width after it was
/// written and dropped with its whole bucket, so for at most two.
pub const REQUEST_BUCKET_MS: u64 = 15 * 60 * 1000;

/// Longest TTL: 100 years. Longer is a mistake in units, and sums with a clock can never overflow.
pub const TTL_MS_MAX: u64 = 100 * 365 * 24 * 3600 * 1000;

/// Longest time that a document lock holds before it must be extended: who died with a lock blocks others no longer.
pub const LOCK_MS_MAX: u64 = 30_000;

/// How long a document lock holds where nothing else is asked for.
pub const LOCK_MS_DEFAULT: u64 = 15_000;

/// Most bytes of the rows of a range that are read at once, beside the last one: what a walk does not use was read in vain.
pub const PAGE_BYTES: usize = 1024 * 1024;

/// Most rows that one maintenance command removes, whatever it asks for: bounds the time and memory of one apply.
pub const MAINTENANCE_ROWS_MAX: usize = 1_024;

/// Longest name of a lock, an election, a barrier or a latch. Each of its rows repeats it.
pub const COORDINATION_NAME_BYTES_MAX: usize = 256;

/// Shortest time to live of a session: some heartbeats of the cluster, and a failover takes longer.
pub const SESSION_TTL_MS_MIN: u64 = 100;

/// Longest time to live of a session: who needs longer does not need a session.
pub const SESSION_TTL_MS_MAX: u64 = 24 * 3600 * 1000;

/// Longest owner of a session.
pub const SESSION_OWNER_BYTES_MAX: usize = 256;

/// Most labels of a session.
pub const SESSION_LABELS_MAX: usize = 16;

/// Longest name or value of a label.
pub const SESSION_LABEL_BYTES_MAX: usize = 256;

/// Most sessions in the cluster: a row and a timer each, and each is renewed through the log.
pub const SESSIONS_MAX: u64 = 100_000;

/// Most sessions renewed by one command.
pub const SESSIONS_RENEWED_MAX: usize = 1_024;

/// Most entries, locks and places that hang on one session: all of them go in one revision when it ends.
pub const SESSION_ATTACHED_MAX: u32 = 1_024;

/// Most bytes of the entries that go with one session: all of them are read and moved in one apply when it ends.
pub const SESSION_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most slots of a lock.
pub const LOCK_SLOTS_MAX: u32 = 10_000;

/// Most places in the queue of one lock: all of them may be granted at once, where they share, if the batch has room for it.
pub const LOCK_WAITERS_MAX: u32 = 1_000;

/// Longest wait in the queue of a lock without asking again.
pub const LOCK_WAIT_MS_MAX: u64 = 24 * 3600 * 1000;

/// Longest time for which nobody gets a lock after an unclean end.
pub const LOCK_DELAY_MS_MAX: u64 = 60_000;

/// Longest value that a leader says of itself: each change of it is kept until it is compacted.
pub const PROCLAIMED_BYTES_MAX: usize = 64 * 1024;

/// Most parties of a barrier.
pub const BARRIER_PARTIES_MAX: u32 = 10_000;

/// Most counts of a latch: more is a mistake.
pub const LATCH_COUNT_MAX: u64 = 1_000_000_000;

/// Most timers that fire at the head of one batch. What is due beyond it follows in the next batches.
pub const TIMERS_FIRED_MAX: usize = 256;

/// Deepest JSON accepted anywhere, well below serde_json's own recursion limit of 128.
pub const JSON_DEPTH_MAX: usize = 64;

/// Longest field path as text. Refusals and index definitions repeat it.
pub const PATH_BYTES_MAX: usize = 1_024;

/// Most predicates and groups in one criteria list. [`COMMAND_STEPS_MAX`] bounds their work together.
pub const CRITERIA_TERMS_MAX: usize = 64;

/// Deepest `any`, `all` and `not` inside of each other. More is not for people.
pub const CRITERIA_DEPTH_MAX: usize = 8;

/// Most values in the list of one `in` or `nin`.
pub const CRITERIA_LIST_MAX: usize = 1_000;

/// Longest stretch between two `%` of a `like` pattern that has a `_`, in characters: the bits of one word, which keep
/// the match linear.
pub const LIKE_STRETCH_MAX: usize = 64;

/// Most values found that one unmet condition shows: the alternatives of an `any` have one each.
pub const UNMET_MAX: usize = 8;

/// Most bytes of a value shown in a refusal.
pub const EXCERPT_BYTES_MAX: usize = 256;

/// Most operations in one patch. [`COMMAND_STEPS_MAX`] bounds their work together.
pub const PATCH_OPERATIONS_MAX: usize = 128;

/// Most bytes that one JSON Patch may copy, or move to a deeper place, altogether. Copies of copies grow exponentially;
/// this bounds the document on the way, as [`VALUE_BYTES_MAX`] does at the end.
pub const PATCH_COPIED_BYTES_MAX: usize = VALUE_BYTES_MAX;

/// Most faults that one request is told: whoever fixes those asks again.
pub const READ_FAULTS_MAX: usize = 32;

const _: () = assert!(BATCH_BYTES_SOFT_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(BATCH_EFFECT_BYTES_MAX > 4 * VALUE_BYTES_MAX);
// The longest list there is can be parsed.
const _: () = assert!(COMMAND_STEPS_MAX > 5 * (VALUE_BYTES_MAX / 2) as u64);
const _: () = assert!(COMMAND_BYTES_MAX > VALUE_BYTES_MAX + KEY_BYTES_MAX);

/// Longest name of a collection. Every key below it repeats it, and each write looks for the rules of its key.
pub const COLLECTION_NAME_BYTES_MAX: usize = 256;

/// Most segments in the name of a collection: so many names may a key belong to, and so many rows are looked for.
pub const COLLECTION_SEGMENTS_MAX: usize = 8;

/// Longest name of a sequence.
pub const SEQUENCE_NAME_BYTES_MAX: usize = 256;

/// Most fields with rules in one collection, and most required ones: each is looked up in every document written.
pub const RULE_FIELDS_MAX: usize = 64;

/// Most indexes of one collection: each write changes a row or two in every one of them.
pub const INDEXES_MAX: usize = 16;

/// Most fields of one index.
pub const INDEX_FIELDS_MAX: usize = 8;

/// Longest string in an indexed field: it stands in the key of a row, escaped.
pub const INDEX_TEXT_BYTES_MAX: usize = 1_024;

/// Most bytes of a collection's rules as JSON text: they stand in one log entry and one row, and are kept in memory.
pub const RULES_BYTES_MAX: usize = 64 * 1024;

/// Most faults of a document that one refusal by rules tells. It is kept under the request id.
pub const RULE_FAULTS_MAX: usize = 8;

/// Most ranges of an index that one search walks. A list of values that would make more is looked at as fewer, wider ones.
pub const INDEX_RANGES_MAX: usize = 64;

const _: () = assert!(COLLECTION_NAME_BYTES_MAX < KEY_BYTES_MAX);
const _: () = assert!(RULES_BYTES_MAX < VALUE_BYTES_MAX);

/// Longest name of a queue of tasks. Every row of its tasks repeats it.
pub const QUEUE_NAME_BYTES_MAX: usize = 256;

/// Longest id of a task.
pub const TASK_ID_BYTES_MAX: usize = 256;

/// Most tasks scheduled by one command: as many as a batch may have commands, and for the same reason.
pub const TASKS_SCHEDULED_MAX: usize = 1_000;

/// Most dead tasks that one command puts back into their queue.
pub const TASKS_REQUEUED_MAX: u32 = 1_000;

/// Shortest lease of a task. A failover takes nearly a second, and whoever holds the lease must be able to extend it.
pub const TASK_LEASE_MS_MIN: u64 = 1_000;

/// Longest lease of a task. Work that takes longer extends it.
pub const TASK_LEASE_MS_MAX: u64 = 24 * 3600 * 1000;

/// The lease where nothing else is asked for.
pub const TASK_LEASE_MS_DEFAULT: u64 = 30_000;

/// Most attempts at a task: more are a mistake, which would fill the history.
pub const TASK_ATTEMPTS_MAX: u32 = 1_000;

/// Attempts at a task where nothing else is asked for.
pub const TASK_ATTEMPTS_DEFAULT: u32 = 20;

/// Longest pause before another attempt: a week.
pub const TASK_PAUSE_MS_MAX: u64 = 7 * 24 * 3600 * 1000;

/// Largest factor by which the pauses between attempts grow, in thousandths.
pub const TASK_FACTOR_MILLI_MAX: u32 = 10_000;

/// Longest time for which the id of a completed task is kept: a week.
pub const TASK_KEEP_MS_MAX: u64 = 7 * 24 * 3600 * 1000;

/// How long it is kept where nothing else is asked for: as long as the outcome of a request.
pub const TASK_KEEP_MS_DEFAULT: u64 = REQUEST_BUCKET_MS;

/// Shortest time between two occurrences of a recurring task: each is several log entries.
pub const TASK_EVERY_MS_MIN: u64 = 100;

/// Longest one: a year and a day.
pub const TASK_EVERY_MS_MAX: u64 = 366 * 24 * 3600 * 1000;

/// Longest error that a worker may leave. It stands in the row of the task and is shown in lists.
pub const TASK_ERROR_BYTES_MAX: usize = 4_096;

/// Longest name of a worker.
pub const TASK_WORKER_BYTES_MAX: usize = 256;

/// Longest cron pattern, and longest name of a time zone.
pub const TASK_CRON_BYTES_MAX: usize = 256;

/// As far as a claim looks how many more tasks are due, beside those that it takes.
pub const TASKS_DUE_LOOK: usize = 16;

const _: () = assert!(QUEUE_NAME_BYTES_MAX + TASK_ID_BYTES_MAX < KEY_BYTES_MAX);
const _: () = assert!(TASKS_SCHEDULED_MAX <= BATCH_COMMANDS_MAX);

/// Longest name of a user or a role. Each line of audit and each kept outcome has the name of who asked.
pub const ACCESS_NAME_BYTES_MAX: usize = 128;

/// Most roles of one user: all of them are read to authorise it.
pub const USER_ROLES_MAX: usize = 64;

/// Most grants of one role: each operation is judged by all grants of a user, one after the other.
pub const ROLE_GRANTS_MAX: usize = 64;

/// Most tokens of one user, without those whose time is over: they go with it in one command.
pub const USER_TOKENS_MAX: usize = 256;

/// Longest note of a token.
pub const TOKEN_NOTE_BYTES_MAX: usize = 256;

const _: () = assert!(ROLE_GRANTS_MAX * KEY_BYTES_MAX < VALUE_BYTES_MAX);
const _: () = assert!(2 * ACCESS_NAME_BYTES_MAX + 16 < KEY_BYTES_MAX);

/// Most invitations of newcomers that are open at a time: all of them are looked at when another is made.
pub const INVITATIONS_MAX: usize = 64;

/// Longest time for which an invitation may be used, in milliseconds of cluster clock: 30 days.
pub const INVITATION_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;

/// Most faulted commands that are kept for a report: the newest.
pub const FAULTS_KEPT_MAX: usize = 32;

/// Most work that was set aside that is shown at once.
pub const PARKED_SHOWN_MAX: usize = 256;

/// Largest faulted command that is kept whole: all that are kept together fit into memory beside each other.
pub const FAULT_COMMAND_BYTES_MAX: usize = 256 * 1024;

/// Most prefixes with a quota: a command that sets one looks at all that lie within it.
pub const PREFIX_QUOTAS_MAX: u32 = 1_000;

/// Most prefixes with a quota around one name: each write below them counts in all of these.
pub const NESTED_QUOTAS_MAX: usize = 16;

/// Most principals with a quota of their own.
pub const PRINCIPAL_QUOTAS_MAX: u32 = 10_000;

/// Most bytes of outcomes that are kept under request ids at a time: as much as may be stored by default. At ten thousand writes a
/// second they take a third of it. At the bound new ids are refused, but for commands of operators and for the end of a session; none is
/// forgotten before its time.
pub const REQUEST_TABLE_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// The fill from which on shares hold. Below it, a single client may write as much as the cluster can.
pub const REQUEST_TABLE_SHARED_FROM: u64 = REQUEST_TABLE_BYTES_MAX / 2;

/// The share of one principal, so that no one client takes what all need. Without authentication there are no principals.
pub const REQUEST_TABLE_SHARE_MAX: u64 = REQUEST_TABLE_BYTES_MAX / 4;

/// Most bytes of audit groups of refusals in one bucket. Refusals beyond that are counted, but not recorded.
pub const REFUSALS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The fill of a bucket's record of refusals from which on shares hold: else a client would drown the trail of others, or one refusal
/// of its own among millions.
pub const REFUSALS_SHARED_FROM: u64 = REFUSALS_BYTES_MAX / 2;

/// Most bytes of lines that one principal has in what is recorded from then on.
pub const REFUSALS_SHARE_MAX: u64 = REFUSALS_BYTES_MAX / 8;

/// The fill up to which refusals without a principal are recorded: all of those have one share together, and what is behind it is for
/// principals.
pub const REFUSALS_OF_NOBODY_TO: u64 = REFUSALS_SHARED_FROM + REFUSALS_SHARE_MAX;
