//! The record of what is applied: there and back, and safe on any bytes. The machine's tests have all others.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quorate_machine::codec;
use quorate_machine::machine::{BucketDigest, Sizes, Vars};
use quorate_store::meta::AppliedRecord;
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord, StoredMembershipRecord};

fn applied() -> impl Strategy<Value = AppliedRecord> {
    let bucket = any::<(u64, u128)>().prop_map(|(bucket, digest)| BucketDigest { bucket, digest });
    let vars = (any::<[u64; 4]>(), any::<u128>(), vec(bucket, 0..3)).prop_map(|(words, lasting_digest, buckets)| {
        let [revision, oldest_revision, clock, wall] = words;
        let (collections, sessions, unplanned) = (clock % 3, clock % 5, clock % 7);
        let next_timer = (clock % 2 == 0).then_some(clock);
        Vars {
            revision,
            oldest_revision,
            clock,
            wall,
            collections,
            sessions,
            unplanned,
            next_timer,
            lasting_digest,
            buckets,
            sizes: Sizes { entries: wall % 11, live_bytes: wall, history_bytes: clock },
            level: (revision % 5) as u32,
            epoch: clock % 13,
            epoch_revision: wall,
            access: oldest_revision,
        }
    });
    let log_id =
        || option::of(any::<(u64, u64, u64)>().prop_map(|(term, node, index)| LogIdRecord { term, node, index }));
    let member = any::<(u16, u128)>().prop_map(|(port, incarnation)| {
        let address = format!("[::1]:{port}");
        MemberRecord { peer_addr: address.clone(), client_addr: address, incarnation }
    });
    let nodes = prop::collection::btree_map(any::<u64>(), member, 0..4);
    let configs = vec(prop::collection::btree_set(any::<u64>(), 0..4), 0..3);
    (log_id(), log_id(), configs, nodes, vars).prop_map(
        |(log_id, set_at, configs, nodes, vars): (_, _, Vec<BTreeSet<u64>>, BTreeMap<_, _>, _)| {
            let membership = StoredMembershipRecord { log_id: set_at, membership: MembershipRecord { configs, nodes } };
            AppliedRecord { log_id, membership, vars }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applied_records_come_back(record in applied(), at in any::<prop::sample::Index>(), by in any::<u8>()) {
        let mut bytes = codec::encode(&record);
        prop_assert_eq!(codec::decode::<AppliedRecord>(&bytes).unwrap(), record);
        // What the others say does not matter, only that they return.
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let _ = codec::decode::<AppliedRecord>(&bytes);
        let _ = codec::decode::<AppliedRecord>(&bytes[..at]);
    }
}
