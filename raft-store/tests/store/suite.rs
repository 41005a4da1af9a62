//! openraft's own conformance suite over the log store and the state store together.

use std::sync::Arc;

use crate::state_support::options;
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::identity::Identity;
use quorate_store::log::LogStore;
use quorate_store::raft::TypeConfig;
use tempfile::TempDir;

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<TypeConfig>> {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity { cluster_id: Some(7), node_id: 1, incarnation: 9 };
        let log = LogStore::open(dir.path(), &identity, Arc::new(|fault| panic!("{fault}"))).unwrap();
        let (state, reader) =
            quorate_store::adapters::state_machine::StateMachine::open(dir.path(), options()).unwrap();
        let told = log.clone();
        reader.on_durable(Arc::new(move |index| told.set_durable_state_index(index)));
        Ok((dir, log, state))
    }
}

#[test]
fn the_stores_pass_openrafts_conformance_suite() {
    crate::state_support::runtime().block_on(Suite::test_all(Builder)).unwrap();
}
