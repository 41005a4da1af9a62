//! Target `rows`: keys and values of the state's rows.
//!
//! Two bytes say how long the key is, then come key and value. The key of a row is read in one way only: what can be read is written as
//! the same bytes, or one row could stand twice. Values mean the same after they were written again.

use quorate_machine::codec::CodecError;
use quorate_machine::keyspace::bucket_use::Whose;
use quorate_machine::keyspace::lock_queue::{HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::relocked::LockBefore;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::session::{PartyAt, SessionRow};
use quorate_machine::keyspace::task::{QueueRow, TaskRow};
use quorate_machine::keyspace::{
    access, audit, bucket_use, collection, deadline, entry, family, gates, history, index, lock, lock_queue, members,
    quota, refusals, request, sequence, session, task, timer,
};
use quorate_machine::types::{
    BarrierRow, CollectionRow, Elected, InvitationRow, LatchRow, RemovedRow, RoleRow, TokenRow, UserRow,
};
use quorate_store::offline::decode_row;

use super::commands::{again, record, room};
use super::{assert_explained, memory, samples};

/// See the head of this file.
pub fn check(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (row_key, value) = rest.split_at(length);
    memory::within(room(data.len()), "a row", || {
        if let Err(error) = decode_row(row_key, value) {
            assert_explained(&error);
        }
        check_key(row_key);
        check_value(row_key.first().copied().unwrap_or_default(), value);
    });
}

fn check_key(row_key: &[u8]) {
    match written_again(row_key) {
        Ok(None) => {}
        Ok(Some(written)) => assert_eq!(written.escape_ascii().to_string(), row_key.escape_ascii().to_string()),
        Err(error) => assert_explained(&error),
    }
}

/// The key as it is written when what was read of it is all that is known; `None` where the key does not say enough for that.
fn written_again(row_key: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
    let Some(family) = row_key.first() else { return Ok(None) };
    Ok(Some(match *family {
        family::ENTRY => entry::row_key(entry::decode_key(row_key)?),
        family::HISTORY => history::decode_key(row_key).map(|(key, revision)| history::row_key(&key, revision))?,
        family::AUDIT => audit::decode_key(row_key).map(|(last, index)| audit::row_key(last, index))?,
        family::REFUSALS => refusals::decode_key(row_key).map(|(bucket, index)| refusals::row_key(bucket, index))?,
        family::REQUEST => {
            request::decode_key(row_key).map(|(bucket, owner, id)| request::row_key(bucket, owner, id))?
        }
        family::BUCKET_USE => match bucket_use::decode_key(row_key)? {
            (bucket, Whose::All) => bucket_use::row_key(bucket),
            (bucket, Whose::Kept(owner)) => bucket_use::owner_key(bucket, owner),
            (bucket, Whose::Refused(owner)) => bucket_use::refused_key(bucket, owner),
        },
        family::DEADLINE => deadline::decode_key(row_key).map(|(at, key)| deadline::row_key(at, key))?,
        family::LOCK => lock::decode_key(row_key).map(|(at, key)| lock::row_key(at, key))?,
        family::COLLECTION => collection::row_key(collection::decode_key(row_key)?.as_str().as_bytes()),
        family::INDEX => {
            let (id, values_and_key) = index::decode_key(row_key, 0)?;
            for fields in 1..4 {
                if let Err(error) = index::decode_key(row_key, fields) {
                    assert_explained(&error);
                }
            }
            index::row_key(id, b"", values_and_key)
        }
        family::DROPPED_INDEX => index::dropped_key(index::decode_dropped(row_key)?),
        family::TIMER => timer::decode_key(row_key).map(|(at, kind, subject)| timer::row_key(at, kind, subject))?,
        family::SESSION => session::row_key(session::decode_key(row_key)?),
        family::ATTACHED => {
            let (id, kind, subject) = session::decode_attached(row_key)?;
            session::attached_key(id, kind, subject)
        }
        family::LOCK_HEAD => lock_queue::head_key(&lock_queue::decode_head_key(row_key)?),
        family::HOLDER => {
            lock_queue::decode_holder(row_key).map(|(lock, token)| lock_queue::holder_key(&lock, token))?
        }
        family::WAITER => {
            lock_queue::decode_waiter(row_key).map(|(lock, place)| lock_queue::waiter_key(&lock, place))?
        }
        family::BARRIER => gates::barrier_key(&gates::decode_barrier(row_key)?),
        family::LATCH => gates::latch_key(&gates::decode_latch(row_key)?),
        family::TASK => task::decode_key(row_key).map(|(queue, id)| task::row_key(&queue, &id))?,
        family::TASK_UNPLANNED => {
            task::decode_unplanned(row_key).map(|(queue, id)| task::unplanned_key(&queue, &id))?
        }
        family::QUEUE => task::queue_key(&task::decode_queue(row_key)?),
        family::USER => access::user_key(&access::decode_user(row_key)?),
        family::ROLE => access::role_key(&access::decode_role(row_key)?),
        family::TOKEN => access::token_key(access::decode_token(row_key)?),
        family::INVITATION => members::invitation_key(members::decode_invitation(row_key)?),
        family::REMOVED_MEMBER => members::removed_key(members::decode_removed(row_key)?),
        family::USER_TOKEN => access::decode_user_token(row_key).map(|(user, id)| access::user_token_key(&user, id))?,
        family::QUOTA => quota::row_key(&quota::decode_key(row_key)?),
        family::QUOTA_USE => quota::use_key(&quota::decode_use_key(row_key)?),
        family::ROLE_USER => {
            access::decode_role_user(row_key).map(|(role, user)| access::role_user_key(&role, &user))?
        }
        _ => return Ok(None),
    }))
}

fn check_value(family: u8, value: &[u8]) {
    match family {
        family::ENTRY => check_entry(value),
        family::AUDIT | family::REFUSALS => again(value, audit::decode, audit::encode),
        family::REQUEST => record::<KeptReply>(value),
        family::COLLECTION => record::<CollectionRow>(value),
        family::SEQUENCE => {
            if let Ok(last) = sequence::decode(value) {
                assert_eq!(sequence::decode(&sequence::encode(last)), Ok(last));
            }
        }
        family::SESSION => record::<SessionRow>(value),
        family::ATTACHED => record::<PartyAt>(value),
        family::LOCK_HEAD => record::<LockHead>(value),
        family::HOLDER => record::<HolderRow>(value),
        family::WAITER => record::<WaiterRow>(value),
        family::RELOCKED => record::<LockBefore>(value),
        family::ELECTED => record::<Option<Elected>>(value),
        family::BARRIER => record::<BarrierRow>(value),
        family::LATCH => record::<LatchRow>(value),
        family::TASK => record::<TaskRow>(value),
        family::QUEUE => record::<QueueRow>(value),
        family::USER => record::<UserRow>(value),
        family::ROLE => record::<RoleRow>(value),
        family::TOKEN => record::<TokenRow>(value),
        family::INVITATION => record::<InvitationRow>(value),
        family::REMOVED_MEMBER => record::<RemovedRow>(value),
        _ => {}
    }
}

/// An entry has one form: what can be read is written as the same bytes, on all nodes.
fn check_entry(value: &[u8]) {
    match entry::decode(value) {
        Ok(row) => assert_eq!(entry::encode_row(&row), value),
        Err(error) => assert_explained(&error),
    }
}

/// Rows of each family that the samples left.
pub fn samples() -> Vec<Vec<u8>> {
    let life = samples::life();
    let mut seen = std::collections::BTreeMap::<u8, usize>::new();
    let few = life.rows.iter().filter(|(row_key, _)| {
        let count = seen.entry(row_key[0]).or_default();
        *count += 1;
        *count <= 1
    });
    few.map(|(row_key, value)| put(row_key, value))
        .filter(|sample| sample.len() <= super::replay::FILE_BYTES_MAX)
        .take(super::replay::FILES_MAX)
        .collect()
}

fn put(row_key: &[u8], value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(row_key.len()).expect("keys are bounded");
    [&length.to_le_bytes(), row_key, value].concat()
}
