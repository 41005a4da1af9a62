//! Contained faults: how they are shown, and what is asked of the cluster about them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use quorate_api::{ErrorCode, FaultsAnswer, FaultsReply};
use quorate_machine::command_codec;
use quorate_machine::keyspace::family;
use quorate_machine::keyspace::fault::{FaultCounts, FaultRow, ParkedRow};
use quorate_machine::query::{FaultsRead, KeptFault, Parked};
use quorate_machine::types::{Action, Command, FaultsOp, Outcome};
use serde_json::json;

use crate::raw::{Server, post, read};

const ROUTE: &str = "/v1/cluster/faults";

#[tokio::test]
async fn what_was_contained_is_shown_so_that_it_can_be_reported_and_named() {
    let server = Server::start().await;
    assert_eq!(read::<FaultsAnswer>(&server.get(ROUTE).await).commands, 0);
    let command = command_codec::encode_command(&Command::unnamed(Action::Faults(FaultsOp::Forget)));
    let row = FaultRow { revision: 5, clock: 6_000, wall: 1_700_000_000_000, level: 2, command: command.to_vec() };
    let parked = ParkedRow { index: 8, revision: 6, clock: 7_000, wall: 1_700_000_000_000 };
    let work = [&[family::TIMER][..], b"\0\xff"].concat();
    let contained = FaultsRead {
        counts: FaultCounts { commands: 3, parked: 1 },
        commands: vec![KeptFault { index: 7, nth: 2, row }],
        parked: vec![Parked { work, row: parked }],
    };
    server.backend.answer_next("faults", contained);
    let shown: FaultsAnswer = read(&server.get(ROUTE).await);
    assert_eq!((shown.commands, shown.parked), (3, 1));
    let kept = &shown.kept[0];
    assert_eq!((kept.index, kept.number, kept.revision, kept.level), (7, 2, 5, 2));
    assert_eq!(kept.at, "2023-11-14T22:13:20.000Z");
    let replayed = BASE64.decode(&kept.command).expect("base64");
    assert_eq!(
        command_codec::decode_command(&replayed).map(|command| command.action),
        Ok(Action::Faults(FaultsOp::Forget))
    );

    let set_aside = &shown.work[0];
    assert_eq!((set_aside.kind.as_str(), set_aside.index), ("timer", 8));
    server.backend.come_to(Outcome::Maintained { removed: 1, more: false });
    let done: FaultsReply = read(&post(&server, ROUTE, json!({"verb": "retry", "work": set_aside.work})).await);
    assert_eq!(done.count, 1);
    let asked = server.backend.commands().pop().map(|command| command.action);
    assert_eq!(asked, Some(Action::Faults(FaultsOp::Retry([&[family::TIMER][..], b"\0\xff"].concat()))));
    let gone = post(&server, ROUTE, json!({"verb": "drop", "work": "00ff"})).await.problem();
    assert_eq!((gone.status, gone.code), (404, ErrorCode::NotFound));
}
