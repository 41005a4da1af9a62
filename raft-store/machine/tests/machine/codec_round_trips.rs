//! Every record and every kind of row key: there and back, in order, and safe on any bytes. Commands and what comes of them are those of
//! random runs of the crossing, which knows all kinds.

use crate::machine_support::{Store, wander};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quorate_machine::keyspace::entry::EntryRow;
use quorate_machine::keyspace::history::Version;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::task::TaskRow;
use quorate_machine::keyspace::{audit, bucket, deadline, entry, family, history, refusals, request};
use quorate_machine::types::*;
use quorate_machine::{codec, command_codec};

/// Keys of the bytes that escaping has to care for.
fn key_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()], 1..6)
}

fn values() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![Just(ContentKind::Json), Just(ContentKind::Bytes)];
    (kind, vec(any::<u8>(), 0..300)).prop_map(|(kind, data)| Value { kind, data })
}

fn metas() -> impl Strategy<Value = EntryMeta> {
    let times = any::<[Option<u64>; 2]>();
    (any::<[u64; 3]>(), 1..=u64::MAX, times).prop_map(|(mut revisions, version, [expires_at, locked_until])| {
        revisions.sort_unstable();
        let [create_revision, mod_revision, cas] = revisions;
        EntryMeta { create_revision, mod_revision, version, cas, expires_at, locked_until, session: None }
    })
}

/// A state that a random run comes to, its commands, and their replies.
fn run_of(seed: u64) -> (Store, Vec<Command>, Vec<Reply>) {
    let (mut sent, mut came) = (Vec::new(), Vec::new());
    let store = wander(
        seed,
        12,
        |_| true,
        |_, commands, replies, _| {
            sent.extend_from_slice(commands);
            came.extend_from_slice(replies);
        },
    );
    (store, sent, came)
}

/// Calls every decoder; what they say does not matter, only that they return.
fn decode_everything(bytes: &[u8]) {
    let _ = command_codec::decode_command(bytes);
    let _ = command_codec::decode_batch(&Bytes::copy_from_slice(bytes));
    let _ = codec::decode::<KeptReply>(bytes);
    let _ = audit::decode(bytes);
    let _ = codec::decode::<Reply>(bytes);
    let _ = codec::decode::<TaskRow>(bytes);
    let _ = entry::decode(bytes);
    let _ = entry::decode_key(bytes);
    let _ = history::decode(bytes);
    let _ = history::decode_key(bytes);
    let _ = audit::decode_key(bytes);
    let _ = refusals::decode_key(bytes);
    let _ = request::decode_key(bytes);
    let _ = deadline::decode_key(bytes);
    let _ = bucket::of_row(bytes);
}

/// Changes one byte, and decodes that as everything, whole and cut.
fn decode_damaged(bytes: &[u8], at: prop::sample::Index, by: u8) -> Vec<u8> {
    let (mut damaged, at) = (bytes.to_vec(), at.index(bytes.len()));
    damaged[at] ^= by;
    decode_everything(&damaged);
    decode_everything(&damaged[..at]);
    damaged
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn commands_and_batches_come_back(
        seed in any::<u64>(), words in any::<[u64; 2]>(), random in any::<[u8; 16]>(),
        revision in option::of(0..Command::NO_ACCESS_REVISION), at in any::<prop::sample::Index>(), by in 1..=u8::MAX,
    ) {
        let (_, commands, _) = run_of(seed);
        let encoded = commands.iter().map(command_codec::encode_command).collect();
        let batch = Batch { clock: words[0], wall: words[1], seed: random, commands: encoded };
        let encoded = command_codec::encode_batch(&batch);
        prop_assert_eq!(&command_codec::decode_batch(&encoded).unwrap(), &batch);
        decode_damaged(&encoded, at, by);
        for (encoded, command) in batch.commands.iter().zip(&commands) {
            let decoded = command_codec::decode_command(encoded).unwrap();
            prop_assert_eq!(decoded.fingerprint(), command.fingerprint());
            prop_assert_eq!(&decoded, command);
            // By which revision it was authorised is no part of the fingerprint; every other byte is.
            let again = Command { access_revision: revision, ..command.clone() };
            prop_assert_eq!(again.fingerprint(), command.fingerprint());
            let is_same = revision == command.access_revision;
            prop_assert_eq!(command_codec::encode_command(&again) == *encoded, is_same);
            let Ok(other) = command_codec::decode_command(&decode_damaged(encoded, at, by)) else { continue };
            let again = command_codec::decode_command(&command_codec::encode_command(&other));
            prop_assert_eq!(again.as_ref(), Ok(&other));
            let other = Command { access_revision: command.access_revision, ..other };
            prop_assert!(other == *command || other.fingerprint() != command.fingerprint(), "{:?} and {:?}", other, command);
        }
    }

    #[test]
    fn replies_come_back_and_are_kept_without_values(
        seed in any::<u64>(), fingerprint in any::<u64>(), at in any::<prop::sample::Index>(), by in any::<u8>(),
    ) {
        let (_, _, replies) = run_of(seed);
        for reply in replies {
            prop_assert_eq!(&codec::decode::<Reply>(&codec::encode(&reply)).unwrap(), &reply);
            let row = request::encode(fingerprint, &reply);
            let kept = codec::decode::<KeptReply>(&row).unwrap();
            prop_assert_eq!(kept.reply.outcome.value_bytes(), 0);
            prop_assert_eq!(kept, KeptReply { fingerprint, reply: reply.to_bare() });
            decode_damaged(&row, at, by);
        }
    }

    #[test]
    fn audit_groups_and_tasks_come_back(seed in any::<u64>(), at in any::<prop::sample::Index>(), by in any::<u8>()) {
        let (store, ..) = run_of(seed);
        for (_, row) in store.rows(family::AUDIT) {
            let group = audit::decode(&row).unwrap();
            prop_assert_eq!((&audit::encode(&group), &codec::encode(&group)), (&row, &row));
            decode_damaged(&row, at, by);
        }
        for (_, row) in store.rows(family::TASK) {
            prop_assert_eq!(&codec::encode(&codec::decode::<TaskRow>(&row).unwrap()), &row);
            decode_damaged(&row, at, by);
        }
    }

    #[test]
    fn entry_rows_come_back(
        meta in metas(), key in any::<u64>(), is_relocked in any::<bool>(), value in values()
    ) {
        let key = meta.locked_until.map(|_| key);
        let row = EntryRow { meta, key, is_relocked, kind: value.kind, data: &value.data };
        let (row, written) = (entry::encode_row(&row), row);
        prop_assert_eq!(entry::decode(&row).unwrap(), written);
        prop_assert_eq!(history::decode(&row).unwrap(), Version::Entry(written));
        for length in 0..row.len().min(34) {
            prop_assert!(entry::decode(&row[..length]).is_err(), "cut to {} bytes", length);
        }
    }

    #[test]
    fn row_keys_come_back(key in key_bytes(), first in any::<u64>(), second in any::<u64>(), id in "[ -~]{1,40}", owner in "\\PC{0,20}") {
        let (entry_key, request_key) = (entry::row_key(&key), request::row_key(first, &owner, &id));
        let deadline_key = deadline::row_key(first, &key);
        prop_assert_eq!(entry::decode_key(&entry_key).unwrap(), key.as_slice());
        prop_assert_eq!(history::decode_key(&history::row_key(&key, first)).unwrap(), (key.clone(), first));
        prop_assert_eq!(audit::decode_key(&audit::row_key(first, second)).unwrap(), (first, second));
        prop_assert_eq!(refusals::decode_key(&refusals::row_key(first, second)).unwrap(), (first, second));
        prop_assert_eq!(request::decode_key(&request_key).unwrap(), (first, owner.as_str(), id.as_str()));
        prop_assert_eq!(deadline::decode_key(&deadline_key).unwrap(), (first, key.as_slice()));
        prop_assert_eq!(bucket::of_row(&request_key), Some(first));
        prop_assert_eq!(bucket::of_row(&refusals::row_key(first, second)), Some(first));
        prop_assert_eq!(bucket::of_row(&audit::row_key(first, second)), None);
    }

    #[test]
    fn row_keys_sort_as_what_they_stand_for(
        a in key_bytes(), b in key_bytes(), first in any::<[u64; 2]>(), second in any::<[u64; 2]>()
    ) {
        prop_assert_eq!(entry::row_key(&a).cmp(&entry::row_key(&b)), a.cmp(&b));
        let history = |key: &Vec<u8>, at: usize| history::row_key(key, first[at]);
        prop_assert_eq!(history(&a, 0).cmp(&history(&b, 1)), (&a, first[0]).cmp(&(&b, first[1])));
        let pair = |at: usize| (first[at], second[at]);
        let audit = |at: usize| audit::row_key(first[at], second[at]);
        let refusal = |at: usize| refusals::row_key(first[at], second[at]);
        prop_assert_eq!(audit(0).cmp(&audit(1)), pair(0).cmp(&pair(1)));
        prop_assert_eq!(refusal(0).cmp(&refusal(1)), pair(0).cmp(&pair(1)));
        let deadline = |key: &Vec<u8>, at: usize| deadline::row_key(first[at], key);
        prop_assert_eq!(deadline(&a, 0).cmp(&deadline(&b, 1)), (first[0], &a).cmp(&(first[1], &b)));
    }

    #[test]
    fn the_bounds_of_a_history_hold_its_rows_and_no_others(
        a in key_bytes(), b in key_bytes(), revision in any::<u64>(), other in any::<u64>()
    ) {
        let (first, last) = history::bounds_up_to(&a, revision);
        let inside = |row: &Vec<u8>| first <= *row && *row <= last;
        prop_assert_eq!(inside(&history::row_key(&a, other)), other <= revision);
        prop_assert!(a == b || !inside(&history::row_key(&b, other)));
        prop_assert_eq!(history::lower_bound(&a) <= history::row_key(&b, other), a <= b);
    }

    #[test]
    fn what_is_due_is_what_lies_in_the_due_range(clock in any::<u64>(), by in any::<i8>(), key in key_bytes()) {
        let deadline = clock.saturating_add_signed(by.into());
        let (start, end) = deadline::due_range(clock);
        let row = deadline::row_key(deadline, &key);
        prop_assert_eq!(start <= row && row < end, deadline <= clock);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..80), family in prop::sample::select(vec![
        family::META, family::ENTRY, family::HISTORY, family::AUDIT, family::REFUSALS, family::REQUEST, family::DEADLINE, family::LOCK,
    ])) {
        decode_everything(&bytes);
        decode_everything(&[&[codec::FORMAT_VERSION], bytes.as_slice()].concat());
        decode_everything(&[&[family], bytes.as_slice()].concat());
    }
}

#[test]
fn a_length_beyond_all_bounds_is_refused_and_not_allocated() {
    // Version, access_revision, no id, a principal of 2^62 bytes.
    let bytes = [&[codec::FORMAT_VERSION][..], &[0; 8], &[0, 253], &(1_u64 << 62).to_le_bytes()].concat();
    assert!(matches!(command_codec::decode_command(&bytes), Err(codec::CodecError::Malformed(_))));
}
