//! The queries of a state, as a table.
//!
//! Owns the one list of them, from which comes what a store offers and what a protocol asks. Never answers one: that is
//! [`Moment`](super::Moment)'s.

use super::{KeyRead, ListQuery, ReadPosition, StateFault};
use crate::types::{Entry, Key, Revision};

/// Hands the queries that need nothing but a moment to a macro: `name(arguments) -> answer;` for each. An owner of a state makes each
/// method of [`Queries`] from that.
#[macro_export]
macro_rules! each_query {
    ($make:ident $($before:tt)*) => {
        $make! {
            $($before)*
            get_at(key: &$crate::types::Key, revision: $crate::types::Revision) -> $crate::query::PastRead;
            list(query: &$crate::query::ListQuery) -> $crate::query::ListRead;
            find(query: &$crate::query::FindQuery) -> $crate::query::FindRead;
            changes(query: &$crate::query::ChangesQuery) -> $crate::query::ChangesRead;
            audit(query: &$crate::query::AuditQuery) -> $crate::query::AuditPage;
            request(owner: &str, id: &$crate::types::RequestId) -> ($crate::query::ReadPosition, Option<$crate::keyspace::request::KeptReply>);
            request_owners(id: &$crate::types::RequestId, limit: usize) -> Vec<String>;

            collection_over(prefix: &[u8]) -> Option<$crate::types::CollectionRow>;
            collection(name: &$crate::rules::CollectionName) -> ($crate::query::ReadPosition, Option<$crate::types::CollectionRow>);
            collections(after: Option<&$crate::rules::CollectionName>, limit: usize, bytes_max: usize) -> $crate::query::CollectionsPage;
            last_number(name: &$crate::rules::SequenceName) -> ($crate::query::ReadPosition, u64);

            session(id: $crate::types::SessionId, shown_max: usize) -> $crate::query::Observed<Option<$crate::query::SessionHeld>>;
            session_owners(ids: &[$crate::types::SessionId]) -> $crate::query::Observed<Vec<Option<String>>>;
            sessions(after: Option<$crate::types::SessionId>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::SessionId, $crate::keyspace::session::SessionRow)>>;
            party(lock: &$crate::types::LockName, session: $crate::types::SessionId) -> $crate::query::Observed<$crate::query::Party>;
            places_before(lock: &$crate::types::LockName, place: $crate::types::Revision, max: usize) -> usize;
            lock(lock: &$crate::types::LockName, shown_max: usize) -> $crate::query::Observed<$crate::query::LockRead>;
            locks(space: $crate::types::LockSpace, after: Option<&$crate::types::Name>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::Name, $crate::keyspace::lock_queue::LockHead)>>;
            holder(lock: &$crate::types::LockName, token: $crate::types::Revision) -> $crate::query::Observed<Option<$crate::keyspace::lock_queue::HolderRow>>;
            elected(election: &$crate::types::Name) -> $crate::query::Observed<Option<$crate::query::LeaderChange>>;
            elected_after(election: &$crate::types::Name, after: $crate::types::Revision, limit: usize) -> $crate::query::Observed<$crate::query::Page<$crate::query::LeaderChange>>;
            barrier(name: &$crate::types::Name, session: Option<$crate::types::SessionId>) -> $crate::query::Observed<$crate::query::BarrierRead>;
            latch(name: &$crate::types::Name) -> $crate::query::Observed<Option<$crate::types::LatchRow>>;

            task(queue: &$crate::types::QueueName, id: &$crate::types::TaskId) -> ($crate::query::ReadPosition, Option<$crate::keyspace::task::TaskRow>);
            tasks(query: &$crate::query::TasksQuery) -> $crate::query::TasksPage;
            queue(name: &$crate::types::QueueName) -> ($crate::query::ReadPosition, $crate::query::QueueView);
            queues(after: Option<&$crate::types::QueueName>, limit: usize) -> $crate::query::QueuesPage;

            user(name: &$crate::types::UserName) -> $crate::query::Observed<Option<$crate::types::UserRow>>;
            role(name: &$crate::types::RoleName) -> $crate::query::Observed<Option<$crate::types::RoleRow>>;
            token(id: $crate::types::TokenId) -> $crate::query::Observed<Option<$crate::types::TokenRow>>;
            rights_of(name: &$crate::types::UserName) -> Option<$crate::access::Rights>;
            users(after: Option<&$crate::types::UserName>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::UserName, $crate::types::UserRow)>>;
            roles(after: Option<&$crate::types::RoleName>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::RoleName, $crate::types::RoleRow)>>;
            tokens(after: Option<$crate::types::TokenId>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::TokenId, $crate::types::TokenRow)>>;
            invitations() -> $crate::query::Observed<Vec<($crate::types::TokenId, $crate::types::InvitationRow)>>;

            quota(subject: &$crate::types::QuotaSubject) -> $crate::query::Observed<Option<$crate::query::QuotaRead>>;
            principal_quotas(after: Option<&str>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::QuotaSubject, $crate::query::QuotaRead)>>;
            prefix_quotas(after: Option<&[u8]>, limit: usize) -> $crate::query::Observed<$crate::query::Page<($crate::types::QuotaSubject, $crate::query::QuotaRead)>>;

            faults() -> $crate::query::FaultsRead;
        }
    };
}

/// Hands all of [`Queries`] that may fail to a macro, in the same way: for an owner who has another one answer them.
#[macro_export]
macro_rules! every_query {
    ($make:ident) => {
        $crate::each_query! {
            $make
            get(key: &$crate::types::Key) -> $crate::query::KeyRead;
            count(query: &$crate::query::ListQuery) -> ($crate::query::ReadPosition, u64);
            version(key: &$crate::types::Key, revision: $crate::types::Revision) -> Option<$crate::types::Entry>;
        }
    };
}

/// Hands the queries of a node's own housekeeping to a macro, in the same way.
#[macro_export]
macro_rules! each_query_of_upkeep {
    ($make:ident) => {
        $make! {
            coordination_counts(locks_max: usize) -> $crate::query::CoordinationCounts;
            task_counts(queues_max: usize) -> $crate::query::TaskCounts;
            unplanned_tasks(limit: usize) -> Vec<$crate::query::Unplanned>;
            admission(node: $crate::types::NodeDisk) -> Option<$crate::types::InvitationRow>;
            was_removed(node: $crate::types::NodeDisk) -> bool;
            was_id_removed(node_id: u64) -> bool;
            kept_for_a_while() -> $crate::keyspace::bucket_use::BucketUse;
            largest_keeper() -> Option<(String, u64)>;
            most_refused() -> Option<String>;
            has_counting_work() -> bool;
            compactable_to(keep_ms: u64, keep_revisions: u64) -> Option<$crate::types::Revision>;
            fault_counts() -> $crate::keyspace::fault::FaultCounts;
            open_faults() -> (usize, u64);
        }
    };
}

macro_rules! declare {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        /// Something that has a state and answers queries about it as it is now. All of them block. Those that walk over a range may take long,
        /// and are for threads that may block: lists of anything, `count`, `find`, `changes` and `audit`. All others read few rows, or as many as
        /// they are told to, which takes microseconds where those are in memory.
        pub trait Queries {
            /// Reads one key.
            fn get(&self, key: &Key) -> Result<KeyRead, StateFault>;

            /// Counts the live entries of `[start, end)` at a revision; `limit`, `bytes_max` etc. do not apply. If the revision cannot be
            /// read, the position is the current one and the count 0.
            fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault>;

            /// The version that a key got at a revision, as it was then; `None` where it is compacted, or there never was one.
            fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault>;

            /// The revision at which users, roles or tokens last changed; cheap. See [`crate::types::Command::access_revision`].
            fn access_revision(&self) -> Revision;

            $(
                #[doc = concat!("See [`Moment::", stringify!($name), "`](super::Moment::", stringify!($name), ").")]
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault>;
            )*
        }
    };
}

each_query!(declare);
