//! Coordination in scripts: its commands and its rows.

use quorate_machine::codec;
use quorate_machine::keyspace::lock_queue::{self, HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::relocked::{self, LockBefore};
use quorate_machine::keyspace::session::{self, AttachedKind, PartyAt, SessionRow};
use quorate_machine::keyspace::timer;
use quorate_machine::keyspace::{family, gates};
use quorate_machine::types::{
    Acquire, Action, BarrierOp, BarrierRow, ContentKind, Elected, Guard, LatchOp, LatchRow, LockMode, LockName, LockOp,
    LockSpace, Name, Question, SessionId, SessionOp, Value,
};

/// What a command of a script does.
pub fn action(words: &[&str]) -> Action {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |word: &str| word.parse::<u64>().unwrap();
    match words[0] {
        "session" => Action::Session(match words[1] {
            "create" => {
                let owner = option("owner").unwrap_or_default().to_owned();
                let labels = option("label").and_then(|label| label.split_once(':'));
                let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
                SessionOp::Create { ttl_ms: number(words[2]), owner, labels }
            }
            "renew" => SessionOp::Renew(words[2].split(',').map(|id| SessionId(number(id))).collect()),
            _ => SessionOp::End(SessionId(number(words[2]))),
        }),
        "acquire" => {
            let value = option("value").map(json_value);
            Action::Lock(LockOp::Acquire(Acquire {
                lock: lock(words[1]),
                session: SessionId(number(words[2])),
                mode: if words.contains(&"shared") { LockMode::Shared } else { LockMode::Exclusive },
                slots: option("slots").map(|slots| slots.parse().unwrap()),
                wait_ms: option("wait").map_or(0, number),
                delay_ms: option("delay").map_or(0, number),
                value,
                max_waiters: option("waiters").map(|most| most.parse().unwrap()),
            }))
        }
        "release" => Action::Lock(LockOp::Release { lock: lock(words[1]), token: number(words[2]) }),
        "leave" => Action::Lock(LockOp::Leave {
            lock: lock(words[1]),
            session: SessionId(number(words[2])),
            asked: option("asked").map(number),
            release: words.contains(&"release"),
        }),
        "listen" => Action::Lock(LockOp::Listen { lock: lock(words[1]), session: SessionId(number(words[2])) }),
        "hangup" => {
            let question = match option("token").map(number) {
                Some(token) => Question::Granted(token),
                None => Question::Numbered(option("asked").map_or(0, number)),
            };
            Action::Lock(LockOp::HangUp { lock: lock(words[1]), session: SessionId(number(words[2])), question })
        }
        "proclaim" => {
            let (lock, token, value) = (lock(words[1]), number(words[2]), json_value(words[3]));
            Action::Lock(LockOp::Proclaim { lock, token, value })
        }
        "enter" => {
            let (name, session) = (name(words[1]), SessionId(number(words[2])));
            Action::Barrier(BarrierOp::Enter { name, session, parties: words[3].parse().unwrap() })
        }
        "depart" => Action::Barrier(BarrierOp::Leave { name: name(words[1]), session: SessionId(number(words[2])) }),
        "latch" => Action::Latch(LatchOp::Create { name: name(words[1]), count: number(words[2]) }),
        "count" => Action::Latch(LatchOp::CountDown { name: name(words[1]), by: number(words[2]) }),
        _ => Action::Latch(LatchOp::Remove { name: name(words[1]) }),
    }
}

/// `lock/NAME:TOKEN`.
pub fn guard(text: &str) -> Box<Guard> {
    let (name, token) = text.rsplit_once(':').unwrap();
    Box::new(Guard { lock: lock(name), token: token.parse().unwrap() })
}

fn lock(text: &str) -> LockName {
    let (space, text) = text.split_once('/').unwrap();
    let space = if space == "election" { LockSpace::Election } else { LockSpace::Lock };
    LockName { space, name: name(text) }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn json_value(text: &str) -> Value {
    Value { kind: ContentKind::Json, data: text.into() }
}

/// A row of these families.
pub fn row(row_key: &[u8], value: &[u8]) -> String {
    match row_key[0] {
        family::TIMER => {
            let (at, kind, subject) = timer::decode_key(row_key).unwrap();
            assert!(value.is_empty());
            format!("timer {at} {kind:?} {}", subject.escape_ascii())
        }
        family::SESSION => {
            let row: SessionRow = codec::decode(value).unwrap();
            let SessionRow { ttl_ms, expires_at, armed_at, owner, labels, created, attached, bytes, principal } = row;
            let id = session::decode_key(row_key).unwrap();
            let by = if principal.is_empty() { String::new() } else { format!(" by={principal}") };
            let times = format!("ttl={ttl_ms} until={expires_at} armed={armed_at} created={created}");
            format!("session {id} = {times} owner={owner:?} labels={labels:?} attached={attached} bytes={bytes}{by}")
        }
        family::ATTACHED => {
            let (id, kind, subject) = session::decode_attached(row_key).unwrap();
            let at = (kind == AttachedKind::Lock).then(|| codec::decode::<PartyAt>(value).unwrap());
            format!("attached {id} {kind:?} {} {at:?}", subject.escape_ascii())
        }
        family::LOCK_HEAD => {
            let head: LockHead = codec::decode(value).unwrap();
            format!("head {} = {head:?}", shown(&lock_queue::decode_head_key(row_key).unwrap()))
        }
        family::HOLDER => {
            let (lock, token) = lock_queue::decode_holder(row_key).unwrap();
            format!("holder {} {token} = {:?}", shown(&lock), codec::decode::<HolderRow>(value).unwrap())
        }
        family::WAITER => {
            let (lock, place) = lock_queue::decode_waiter(row_key).unwrap();
            format!("waiter {} {place} = {:?}", shown(&lock), codec::decode::<WaiterRow>(value).unwrap())
        }
        family::ELECTED => {
            let (name, revision) = lock_queue::decode_elected(row_key).unwrap();
            let elected: Option<Elected> = codec::decode(value).unwrap();
            format!("elected {} r{revision} = {elected:?}", name.escape_ascii())
        }
        family::RELOCKED => {
            let (key, revision) = relocked::decode_key(row_key).unwrap();
            format!("relocked {}@{revision} = {:?}", key.escape_ascii(), codec::decode::<LockBefore>(value).unwrap())
        }
        family::BARRIER => {
            let row: BarrierRow = codec::decode(value).unwrap();
            format!("barrier {} = {row:?}", gates::decode_barrier(row_key).unwrap())
        }
        family::LATCH => {
            let row: LatchRow = codec::decode(value).unwrap();
            format!("latch {} = {row:?}", gates::decode_latch(row_key).unwrap())
        }
        other => panic!("family {other:#04x}"),
    }
}

fn shown(lock: &LockName) -> String {
    format!("{:?}/{}", lock.space, lock.name)
}
