//! What the Rust client does beside calls: members that it finds.

use std::time::Duration;

use cluster_tests::{Cluster, PATIENCE, eventually};
use quorate_client::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_node_finds_the_others_and_outlives_it() {
    let mut cluster = Cluster::start().await;
    let given = cluster.ids()[0];
    let client = Client::new(cluster.client_address(given).to_string()).expect("an endpoint");
    let stays = Client::builder().endpoints(cluster.client_address(given).to_string()).discover_members(false);
    let stays = stays.timeout(Duration::from_secs(2)).build().expect("an endpoint");
    eventually("the members are discovered", PATIENCE, async || {
        client.put_json("k", &1).await.map_err(|error| error.to_string())?;
        let known = client.known_endpoints().len();
        if known == 3 { Ok(()) } else { Err(format!("{known} nodes")) }
    })
    .await;
    assert_eq!(client.endpoints().len(), 1, "what was given stays what it is");
    stays.put_json("k", &1).await.expect("written");
    cluster.kill(given).await;
    client.put_json("k", &2).await.expect("the others take it");
    assert_eq!(client.get_json::<u64>("k").await.expect("read").expect("is there").content, 2);
    stays.get("k").await.expect_err("it knows nobody else");
    cluster.bring_up(given).await;
    cluster.assert_agreement().await;
}
