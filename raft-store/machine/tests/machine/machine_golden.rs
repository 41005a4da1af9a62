//! Golden scripts: what each command answers and which rows it leaves, to the letter.
//!
//! `testscripts/machine/*.txt` are blocks of input, `---`, exact output, and a blank line. One block is one batch
//! in an apply call of its own. Input lines:
//!
//! ```text
//! @CLOCK                    moves the cluster clock, and with it the wall clock
//! wall MS                   what the wall clock is in this block, whatever it was before
//! OP KEY [VALUE] [OPTION…]  OP: insert upsert replace patch remove touch lock extend unlock; MS follows the latter but
//!                           unlock; a value `b:…` is bytes, `size:N` N bytes
//!                           OPTION: if=absent|present|CAS|any:CAS,…|none:CAS,…  where=CRITERIA  ttl=MS  keep  never  usual  prev
//!                           id=ID  by=PRINCIPAL  session=ID  guard=LOCK:TOKEN
//! bulk [id=ID] [by=NAME] ; OP … ; OP …
//! txn [id=ID] [by=NAME] ; STEP ; …   STEP: check KEY [OPTION…] | then … | else …; there `get KEY`, `OP …`, or `( STEP ; … )`
//! claim PREFIX MS [where=…] [order=FIELD,…] [limit=N] [patch=JSON] [id=ID]
//! remove_where|patch_where PREFIX [where=…] [if=…] [patch=JSON] [limit=N] [after=KEY] [id=ID]
//! rules NAME JSON|none [if=absent|present|CAS] [id=ID]
//! numbers NAME COUNT [id=ID]
//! session create TTL [owner=NAME] [label=NAME:VALUE] | session renew ID,… | session end ID   [id=ID]
//! acquire LOCK SESSION [wait=MS] [shared] [slots=N] [delay=MS] [value=JSON] [id=ID]   LOCK: lock/NAME or election/NAME
//! release LOCK TOKEN | leave LOCK SESSION [asked=NUMBER] [release] | proclaim LOCK TERM JSON   [id=ID]
//! listen LOCK SESSION | hangup LOCK SESSION asked=NUMBER|token=TOKEN   [id=ID]
//! enter NAME SESSION PARTIES | depart NAME SESSION | latch NAME COUNT | count NAME BY | unlatch NAME   [id=ID]
//! task QUEUE schedule ID|- PAYLOAD [at=MS|in=MS] [every=MS|cron=PATTERN] [max=N] [first=MS] [longest=MS] [factor=MILLI]
//!                     [keep=MS] [replace] [; …] [id=ID]     a `_` in a pattern is a space
//! task QUEUE claim [limit=N] [lease=MS] [worker=NAME] [id=ID]
//! task QUEUE extend|complete|fail ID TOKEN [lease=MS] [error=TEXT] [retry=MS] [die] [back] [id=ID]
//! task QUEUE cancel ID | requeue ID | requeue limit=N | plan ID SEEN [due=MS]
//! quota default|principal/NAME|prefix/TEXT none|[sessions=N] [locks=N] [entries=N] [bytes=N] [tasks=N]
//! indexes ROWS              Indexes
//! level N                   RaiseLevel
//! count_rows                Count
//! expire LIMIT              ExpireDue
//! compact REVISION GROUPS   Compact
//! epoch                     goes on in another cluster, after the commands of the block
//! garbage HEX               bytes that are no command
//! ```
//!
//! and, answered after the batch of their block: `dry OP …` (evaluated only), `read KEY REVISION`, `vars`, `rows [FAMILY]`
//! (first word of the line), `hex` (all rows in raw hex: pins the form on disk).
//! `QUORATE_BLESS=1` writes the actual output into the scripts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::machine_support::{Store, access, coordination, show, tasks};
use bytes::Bytes;
use quorate_machine::document::path::Field;
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch};

use quorate_machine::keyspace::digest;
use quorate_machine::keyspace::{audit, bucket, family, refusals};
use quorate_machine::machine::{Sizes, Vars};
use quorate_machine::rules::{CollectionName, Rules, SequenceName};
use quorate_machine::types::{
    Action, Batch, Change, Check, ClaimOp, Command, ContentKind, Expect, Expiry, Key, Maintenance, NumbersOp, Outcome,
    Presence, QuotaBounds, QuotaOp, QuotaSubject, Rejection, Reply, RequestId, RulesChange, RulesOp, SessionId, Step,
    Txn, Value, WhereChange, WhereOp, WriteOp,
};
use quorate_machine::{command_codec, machine};

#[test]
fn every_script_gives_its_exact_output() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testscripts/machine");
    let mut scripts: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for path in scripts {
        let expected = fs::read_to_string(&path).unwrap();
        let actual = run(&expected);
        if std::env::var_os("QUORATE_BLESS").is_some() {
            fs::write(&path, actual).unwrap();
        } else {
            let differs = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
            let line = differs.unwrap_or(expected.lines().count().min(actual.lines().count()));
            let at = |text: &str| text.lines().nth(line).unwrap_or("the end").to_owned();
            let (path, number) = (path.display(), line + 1);
            assert!(expected == actual, "{path}:{number}\n  should be {}\n  but is    {}", at(&expected), at(&actual));
        }
    }
}

/// The script with the outputs as they are.
fn run(script: &str) -> String {
    let mut store = Store::default();
    let mut clock = 0;
    let mut out = String::new();
    for block in script.trim_end().split("\n\n") {
        let input = block.split("\n---").next().unwrap();
        let lines: Vec<&str> = input.lines().filter(|line| !line.starts_with('#')).collect();
        writeln!(out, "{input}").unwrap();
        if !lines.is_empty() {
            writeln!(out, "---\n{}", run_block(&mut store, &mut clock, &lines).trim_end()).unwrap();
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    // Whatever a state holds, it can go on in another cluster.
    store.begin_epoch();
    assert_eq!(store.vars.sessions, 0);
    let left = [family::SESSION, family::ATTACHED, family::HOLDER, family::WAITER, family::BARRIER, family::LOCK];
    assert!(left.iter().all(|family| store.rows(*family).is_empty()), "something of before is left");
    out
}

fn run_block(store: &mut Store, clock: &mut u64, lines: &[&str]) -> String {
    let mut out = String::new();
    let (queries, commands): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| is_query(line));
    let batch = batch_of(clock, &commands);
    if lines.iter().any(|line| !is_query(line)) {
        let (replies, changed) = store.apply(&[batch]).unwrap();
        store.check();
        replies.concat().iter().for_each(|reply| writeln!(out, "{}", show::reply(reply)).unwrap());
        if !changed.is_empty() {
            let changed: Vec<_> = changed.iter().map(|(key, revision)| format!("{key}@{revision}")).collect();
            writeln!(out, "changed {}", changed.join(" ")).unwrap();
        }
    }
    if queries.contains(&"epoch") {
        store.begin_epoch();
    }
    queries.iter().filter(|line| **line != "epoch").for_each(|line| out.push_str(&query(store, line)));
    if out.is_empty() { "ok".into() } else { out }
}

/// The batch of a block.
fn batch_of(clock: &mut u64, commands: &[&str]) -> Batch {
    let mut batch = Batch { clock: *clock, wall: 1_000_000 + *clock, seed: [7; 16], commands: Vec::new() };
    for line in commands {
        if let Some(moved) = line.strip_prefix('@') {
            *clock = moved.parse().unwrap();
            (batch.clock, batch.wall) = (*clock, 1_000_000 + *clock);
        } else if let Some(wall) = line.strip_prefix("wall ") {
            batch.wall = wall.parse().unwrap();
        } else if let Some(hex) = line.strip_prefix("garbage ") {
            batch.commands.push(Bytes::from(unhex(hex)));
        } else {
            batch.commands.push(command_codec::encode_command(&command(line)));
        }
    }
    batch
}

/// A row of the state is missing, or is not what it should be: whichever it is, everything that the script still does is
/// answered, on every node alike however it groups its entries, and what is told of it is replicated like the rest.
#[test]
fn whatever_row_is_damaged_nothing_ends_and_all_nodes_agree() {
    std::panic::set_hook(Box::new(|panic| {
        if !machine::is_catching() {
            eprintln!("{panic}");
        }
    }));
    let (mut cases, mut contained) = (0, 0);
    for (name, batches) in scripts() {
        let mut store = Store::default();
        // A damage before each second block: the others meet the same rows once more.
        for at in (1..batches.len()).step_by(2) {
            store.apply(&batches[at.max(2) - 2..at]).unwrap();
            for (row_key, _) in store.view.0.clone() {
                for damage in [None, Some(vec![0xFF, 1])] {
                    let place = format!("{name}, before block {at}, row {} as {damage:?}", row_key.escape_ascii());
                    let Some(damaged) = damage_of(&store, &row_key, damage) else { continue };
                    contained += assert_goes_on(damaged, &batches[at..], &place);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 1_000 && contained > cases / 4, "{contained} faults in {cases} cases prove little");
}

/// The batches of each script, by its name.
fn scripts() -> Vec<(String, Vec<Batch>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testscripts/machine");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    let batches = |script: String| {
        let mut clock = 0;
        let blocks = script.trim_end().split("\n\n").map(|block| block.split("\n---").next().unwrap().to_owned());
        blocks
            .map(|input| {
                let lines = input.lines().filter(|line| !line.starts_with('#') && !is_query(line));
                batch_of(&mut clock, &lines.collect::<Vec<_>>())
            })
            .collect()
    };
    paths.iter().map(|path| (path.display().to_string(), batches(fs::read_to_string(path).unwrap()))).collect()
}

/// The store with another row in place of one, or none; not of rows that go with a bucket, and not where it is the same.
fn damage_of(store: &Store, row_key: &[u8], damage: Option<Vec<u8>>) -> Option<Store> {
    if bucket::of_row(row_key).is_some() || damage.as_ref() == store.view.0.get(row_key) {
        return None;
    }
    let mut damaged = store.clone();
    match damage {
        Some(row) => damaged.view.0.insert(row_key.to_vec(), row),
        None => damaged.view.0.remove(row_key),
    };
    let moved = digest::of_rows(&damaged.view.0).wrapping_sub(digest::of_rows(&store.view.0));
    damaged.vars.lasting_digest = damaged.vars.lasting_digest.wrapping_add(moved);
    damaged.vars.sizes = Sizes::of_rows(&damaged.view.0);
    Some(damaged)
}

/// Applies batches all in one call and one by one. Gives how many faults were contained.
fn assert_goes_on(damaged: Store, batches: &[Batch], place: &str) -> usize {
    let (mut whole, mut parts) = (damaged.clone(), damaged);
    let (replies, contained) = whole.apply_contained(batches);
    let mut parted = Vec::new();
    for batch in batches {
        let before = parts.clone();
        let told = parts.apply_contained(std::slice::from_ref(batch));
        assert_taken_back(&before, &parts, &told.0.concat(), batch, place);
        parted.push(told);
    }
    assert_eq!(replies, parted.iter().flat_map(|(replies, _)| replies.clone()).collect::<Vec<_>>(), "{place}");
    assert!(whole == parts, "{place}: the state depends on how entries are grouped");
    assert_eq!(whole.vars.digest(), digest::of_rows(&whole.view.0), "{place}: the digest");
    assert_eq!(whole.vars.sizes, Sizes::of_rows(&whole.view.0), "{place}: the sizes");
    let told = replies.iter().flatten().filter(|reply| matches!(reply.outcome, Outcome::Rejected(Rejection::Internal)));
    let counted = whole.fault_counts();
    assert!(told.filter(|reply| !reply.replayed).count() as u64 <= counted.commands, "{place}: {counted:?}");
    contained.len()
}

/// Where all commands of a batch faulted and nothing else was due, the state is as before, but for what tells of it.
fn assert_taken_back(before: &Store, after: &Store, replies: &[Reply], batch: &Batch, place: &str) {
    let is_internal = |reply: &Reply| reply.outcome == Outcome::Rejected(Rejection::Internal);
    // A wall clock that goes back sets a timer that is due at once, and with it the next one is looked for anew.
    let is_due = batch.wall < before.vars.wall || before.vars.next_timer.is_some_and(|next| next <= batch.clock);
    let sets_aside = before.rows(family::PARKED) != after.rows(family::PARKED);
    if is_due || sets_aside || !replies.iter().all(is_internal) {
        return;
    }
    let refused = after.view.0.get(&refusals::row_key(bucket::at(after.vars.clock), after.index));
    let lines = refused.map_or(0, |row| audit::decode(row).unwrap().lines.len());
    assert_eq!(lines, replies.iter().filter(|reply| !reply.replayed).count(), "{place}: lines of audit after a fault");
    let lasting = |store: &Store| -> Vec<_> {
        let told = [family::FAULT, family::FAULT_COUNTS, family::PARKED];
        let rows = store.view.0.iter().filter(|(row_key, _)| !told.contains(&row_key[0]));
        rows.filter(|(row_key, _)| bucket::of_row(row_key).is_none())
            .map(|row| (row.0.clone(), row.1.clone()))
            .collect()
    };
    assert_eq!(lasting(after), lasting(before), "{place}: the rows after a fault");
    let scalars = |store: &Store| {
        let Vars { revision, oldest_revision, collections, sessions, unplanned, next_timer, level, .. } = store.vars;
        (revision, oldest_revision, collections, sessions, unplanned, next_timer, level)
    };
    assert_eq!(scalars(after), scalars(before), "{place}: the scalars after a fault");
}

fn is_query(line: &str) -> bool {
    ["dry", "read", "vars", "rows", "hex", "epoch"].contains(&line.split(' ').next().unwrap())
}

fn query(store: &Store, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "dry" => {
            let command = command(line.strip_prefix("dry ").unwrap());
            let reply = machine::evaluate(&store.view, &store.vars, store.index, &command).unwrap();
            format!("dry {}\n", show::reply(&reply))
        }
        "read" => {
            let entry = store.read_at(&unescape(words[1]), words[2].parse().unwrap());
            format!(
                "{} at {}: {}\n",
                words[1],
                words[2],
                entry.map_or("missing".into(), |entry| show::show_entry(&entry))
            )
        }
        "vars" => format!("{:?}\n", store.vars),
        "rows" => {
            let shown = store.view.0.iter().map(|(key, row)| show::row(key, row) + "\n");
            shown.filter(|row| words.get(1).is_none_or(|family| row.starts_with(family))).collect()
        }
        "hex" => store.view.0.iter().map(|(key, row)| format!("{} = {}\n", hex(key), hex(row))).collect(),
        other => panic!("{other}"),
    }
}

/// Any command may have a request id, a principal, and the access revision by which it was authorised: `stamp=`.
fn command(line: &str) -> Command {
    let option = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let is_own = |word: &&str| ["id=", "by=", "stamp="].iter().any(|name| word.starts_with(*name));
    let words: Vec<&str> = line.split(' ').filter(|word| !is_own(word)).collect();
    Command {
        request_id: option("id").map(|id| RequestId(id.into())),
        principal: option("by").unwrap_or_default().to_owned(),
        action: action(&words),
        access_revision: option("stamp").map(|stamp| stamp.parse().unwrap()),
    }
}

fn action(words: &[&str]) -> Action {
    match words[0] {
        "expire" => Action::Maintain(Maintenance::ExpireDue { limit: words[1].parse().unwrap() }),
        "compact" => {
            let (revision, groups_max) = (words[1].parse().unwrap(), words[2].parse().unwrap());
            Action::Maintain(Maintenance::Compact { revision, groups_max })
        }
        "level" => Action::Maintain(Maintenance::RaiseLevel { level: words[1].parse().unwrap() }),
        "count_rows" => Action::Maintain(Maintenance::Count),
        "indexes" => Action::Maintain(Maintenance::Indexes { rows_max: words[1].parse().unwrap() }),
        "session" | "acquire" | "release" | "leave" | "listen" | "hangup" | "proclaim" | "enter" | "depart"
        | "latch" | "count" | "unlatch" => coordination::action(words),
        "quota" => Action::Quota(quota(words)),
        "user" | "unuser" | "role" | "unrole" | "token" | "untoken" => Action::Access(access::op(words)),
        "task" => Action::Task(tasks::op(words)),
        "claim" | "remove_where" | "patch_where" | "rules" | "numbers" => query_action(words),
        "bulk" => Action::Bulk(parts(&words[1..])[1..].iter().map(|words| write_op(words)).collect()),
        "txn" => Action::Txn(txn(&parts(&words[1..])[1..])),
        _ => Action::Write(write_op(words)),
    }
}

fn quota(words: &[&str]) -> QuotaOp {
    let subject = match words[1].split_once('/') {
        None => QuotaSubject::Default,
        Some(("principal", name)) => QuotaSubject::Principal(name.into()),
        Some((_, prefix)) => QuotaSubject::Prefix(unescape(prefix)),
    };
    let bound = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    let [sessions, locks, entries, bytes, tasks] = ["sessions", "locks", "entries", "bytes", "tasks"].map(bound);
    match words.contains(&"none") {
        true => QuotaOp::Remove(subject),
        false => QuotaOp::Set { subject, bounds: QuotaBounds { sessions, locks, entries, bytes, tasks } },
    }
}

/// A command about what is found, a collection or a sequence.
fn query_action(words: &[&str]) -> Action {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let listed = |name: &str| option(name).map_or(Criteria::default(), criteria);
    let patch = option("patch").map(|patch| Patch::read(&json(patch), "/patch").unwrap());
    let guard = || option("guard").map(coordination::guard);
    let (prefix, limit) = (unescape(words[1]), option("limit").map_or(10, |limit| limit.parse().unwrap()));
    match words[0] {
        "claim" => {
            let names = option("order").map_or(Vec::new(), |names| names.split(',').collect());
            let order = Order::new(names.into_iter().map(order_field).collect());
            let lock_ms = words[2].parse().unwrap();
            Action::Claim(ClaimOp { prefix, criteria: listed("where"), order, limit, lock_ms, patch, guard: guard() })
        }
        "rules" => {
            let expect = match option("if") {
                None => Expect::ANY,
                Some("absent") => Expect::ABSENT,
                Some("present") => Expect::PRESENT,
                Some(cas) => Expect::cas(cas.parse().unwrap()),
            };
            let change = match words[2] {
                "none" => RulesChange::Remove,
                text => RulesChange::Set(Rules::read(&json(text), "").unwrap()),
            };
            Action::Rules(RulesOp { name: CollectionName::new(words[1]).unwrap(), expect, change })
        }
        "numbers" => {
            let (name, count) = (SequenceName::new(words[1]).unwrap(), words[2].parse().unwrap());
            Action::Numbers(NumbersOp { name, count })
        }
        _ => {
            let change = match patch {
                Some(patch) => WhereChange::Patch { patch, expiry: Expiry::Keep },
                None => WhereChange::Remove,
            };
            let after = option("after").map(|key| Key::new(unescape(key)).unwrap());
            let (criteria, condition) = (listed("where"), listed("if"));
            Action::Where(WhereOp { prefix, criteria, condition, change, limit, after, guard: guard() })
        }
    }
}

fn criteria(list: &str) -> Criteria {
    Criteria::read(&json(list), "/if").unwrap()
}

fn order_field(name: &str) -> OrderField {
    let (name, descending) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
    OrderField { field: Field::parse(name).unwrap(), descending }
}

/// Splits at each `;` that stands in no parentheses.
fn parts<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let (mut parts, mut depth) = (vec![Vec::new()], 0);
    for word in words {
        match *word {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        match (*word, depth) {
            (";", 0) => parts.push(Vec::new()),
            _ => parts.last_mut().unwrap().push(*word),
        }
    }
    parts
}

fn txn(parts: &[Vec<&str>]) -> Txn {
    let mut txn = Txn::default();
    for words in parts {
        match words[0] {
            "check" => {
                let op = write_op(&[&["touch"], &words[1..]].concat());
                txn.checks.push(Check { key: op.key, expect: op.expect, condition: op.condition });
            }
            "then" => txn.then.push(step(&words[1..])),
            "else" => txn.otherwise.push(step(&words[1..])),
            other => panic!("{other} in {words:?}"),
        }
    }
    txn
}

fn step(words: &[&str]) -> Step {
    match words[0] {
        "get" => Step::Get(Key::new(unescape(words[1])).unwrap()),
        "(" => Step::Txn(self::txn(&parts(&words[1..words.len() - 1]))),
        _ => Step::Write(write_op(words)),
    }
}

fn write_op(words: &[&str]) -> WriteOp {
    let line = words.join(" ");
    let mut words = words.iter().copied();
    let number = |word: Option<&str>| word.unwrap().parse::<u64>().unwrap();
    let verb = words.next().unwrap();
    let key = Key::new(unescape(words.next().unwrap())).unwrap();
    let change = match verb {
        "insert" | "upsert" | "replace" => Change::Put(value(words.next().unwrap())),
        "patch" => Change::Patch(Patch::read(&json(words.next().unwrap()), "/patch").unwrap()),
        "remove" => Change::Remove,
        "touch" => Change::Touch,
        "lock" => Change::Lock(number(words.next())),
        "extend" => Change::Extend(number(words.next())),
        "unlock" => Change::Unlock,
        other => panic!("{other} in {line}"),
    };
    let keeps = matches!(change, Change::Patch(_) | Change::Touch) || change.is_of_lock();
    let expiry = if keeps { Expiry::Keep } else { Expiry::Never };
    let mut op = WriteOp { change, expiry, ..WriteOp::removal(key, false) };
    for option in words {
        match option.split_once('=').unwrap_or((option, "")) {
            ("if", "absent") => op.expect = Expect::ABSENT,
            ("if", "present") => op.expect = Expect::PRESENT,
            ("if", list) if list.starts_with("any:") => op.expect = Expect::any_of(tokens(&list[4..])),
            ("if", list) if list.starts_with("none:") => op.expect = Expect::none_of(tokens(&list[5..])),
            ("if", cas) => op.expect = Expect::cas(cas.parse().unwrap()),
            ("where", list) => op.condition = Criteria::read(&json(list), "/if").unwrap(),
            ("ttl", ms) => op.expiry = Expiry::After(ms.parse().unwrap()),
            ("keep", _) => op.expiry = Expiry::Keep,
            ("never", _) => op.expiry = Expiry::Never,
            ("usual", _) => op.expiry = Expiry::Usual,
            ("prev", _) => op.return_previous = true,
            ("session", id) => op.session = Some(SessionId(id.parse().unwrap())),
            ("guard", guard) => op.guard = Some(coordination::guard(guard)),
            other => panic!("{other:?} in {line}"),
        }
    }
    let presence = match verb {
        "insert" => Presence::Absent,
        "replace" => Presence::Present,
        _ => op.expect.presence,
    };
    assert!([Presence::Any, presence].contains(&op.expect.presence), "it contradicts itself: {line}");
    op.expect.presence = presence;
    op
}

fn tokens(list: &str) -> Vec<u64> {
    list.split(',').map(|token| token.parse().unwrap()).collect()
}

fn value(word: &str) -> Value {
    if let Some(size) = word.strip_prefix("size:") {
        return Value { kind: ContentKind::Bytes, data: vec![b'x'; size.parse().unwrap()] };
    }
    match word.strip_prefix("b:") {
        Some(bytes) => Value { kind: ContentKind::Bytes, data: bytes.into() },
        None => Value { kind: ContentKind::Json, data: word.into() },
    }
}

fn json(word: &str) -> Json<'_> {
    Json::parse(word.as_bytes()).unwrap()
}

/// `\0` is a zero byte.
fn unescape(word: &str) -> Vec<u8> {
    word.replace("\\0", "\0").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}
