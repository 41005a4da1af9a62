//! `quorate bench` against a node that always says yes.

use std::time::Duration;

use quorate_client::api::OpKind;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::PATIENCE;
use crate::commands::{command, quorate};
use crate::fake::Fake;
use crate::held::signal;

#[tokio::test]
async fn it_measures_each_kind_and_tells_programs() {
    let fake = Fake::start().await;
    let arguments = [
        "bench",
        "--clients",
        "4",
        "--ops",
        "300",
        "--warmup",
        "0s",
        "--keys",
        "20",
        "--seed",
        "7",
        "--mix",
        "put=1,get=1,cas=1",
        "--output",
        "json",
    ];
    let output = quorate(&fake.address, &arguments).await;
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["ops"].as_u64() >= Some(300), "{report}");
    for kind in ["put", "get", "cas"] {
        let kind = &report["kinds"][kind];
        assert!(kind["p50"].as_u64() > Some(0) && kind["p50"].as_u64() <= kind["max"].as_u64(), "{report}");
    }
    assert_eq!((&report["seed"], report["errors"].as_object().map(serde_json::Map::len)), (&7.into(), Some(0)));
    assert_eq!(report["protocol"], "stream");
    let puts = fake.seen().into_iter().filter_map(|seen| seen.op.filter(|op| op.op == OpKind::Upsert));
    let values: Vec<_> = puts.filter_map(|op| op.value).collect();
    assert!(!values.is_empty() && values.iter().all(|value| value.0.get().len() == 256), "as long as asked for");
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupt_ends_it_with_the_results_so_far() {
    let fake = Fake::start().await;
    let mut bench = command(&fake.address, &["bench", "--clients", "2", "--duration", "1h", "--warmup", "0s"]);
    bench.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = bench.spawn().expect("the binary runs");
    let loaded = async {
        while fake.seen().len() < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, loaded).await.expect("load arrives");
    signal(&child, "-INT");
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).await.expect("UTF-8");
    assert!(child.wait().await.expect("ends").success(), "{text}");
    assert!(text.contains("operations/s") && text.contains("errors: none"), "{text}");
}
