//! Users, roles and tokens: administered on any node, the same on all, through crashes, snapshots and backups; and no secret
//! stays anywhere. What they are good for is not here: nodes of these clusters ask nobody who they are.

use std::path::Path;
use std::time::Duration;

use cluster_harness::{Cluster, Settings};
use quorate_client::api::{ErrorCode, Grant, Permission};
use quorate_client::{Client, RequestId};

use crate::backups::succeed;

fn grant(permission: Permission, prefix: &str) -> Grant {
    Grant { permission, prefix: prefix.into() }
}

fn client(cluster: &Cluster, id: u64) -> Client {
    let address = cluster.client_address(id).to_string();
    Client::builder()
        .endpoints(&address)
        .discover_members(false)
        .timeout(Duration::from_secs(20))
        .build()
        .expect("a client")
}

/// Whether any file below a directory has these bytes in it.
fn holds(dir: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(dir).expect("a directory").any(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => holds(&path, bytes),
            false => std::fs::read(&path).is_ok_and(|all| all.windows(bytes.len()).any(|window| window == bytes)),
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_roles_and_tokens_are_the_same_everywhere_and_go_through_crashes_and_snapshots() {
    let settings = Settings::with_ids([1, 2, 3]).flag("--snapshot-every-entries", 50).flag("--keep-log-entries", 10);
    let mut cluster = Cluster::start_with(settings).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let (first, second) = (client(&cluster, leader), client(&cluster, follower));
    let grants = [grant(Permission::Write, "orders/"), grant(Permission::Read, "stock/ü")];

    let role = second.access().set_role("orders", grants.clone()).await.expect("a role");
    let user = first.access().set_user("shop", ["orders", "orders"]).await.expect("a user");
    assert_eq!((&user.roles[..], user.set_revision > role.set_revision), (&["orders".to_owned()][..], true));
    let shown = first.access().role("orders").await.expect("an answer").expect("a role");
    assert_eq!(shown.grants, [grants[1].clone(), grants[0].clone()]);

    let token = second.access().create_token("shop").note("ci").await.expect("a token");
    // It may have the separator in it.
    let secret = token.token.0.splitn(3, '_').nth(2).expect("a secret");
    assert!(token.token.0.starts_with(&format!("qt_{}_", token.id)));
    let brief = second.access().create_token("shop").expires_in(Duration::from_millis(1)).await.expect("a token");
    let id: RequestId = "one-token".parse().expect("an id");
    first.access().create_token("shop").request_id(id.clone()).await.expect("a token");
    let lost = second.access().create_token("shop").request_id(id).await.expect_err("its secret is lost");
    assert_eq!(lost.code(), Some(ErrorCode::RequestIdReused), "{lost}");

    // The rest of the test is about a node that was not there, and gets a snapshot.
    cluster.kill(follower).await;
    let first = client(&cluster, cluster.leader().await);
    for number in 0..100 {
        first.put(format!("k/{number}"), quorate_client::Value::json_text("1")).await.expect("a write");
    }
    first.access().set_user("shop", [] as [&str; 0]).await.expect("without roles");
    first.access().remove_role("orders").await.expect("nobody has it");
    cluster.bring_up(follower).await;
    cluster.wait_all_ready().await;
    for id in cluster.ids() {
        let access = client(&cluster, id);
        let access = access.access();
        assert!(access.role("orders").await.expect("an answer").is_none());
        assert_eq!(access.user("shop").await.expect("an answer").expect("a user").roles, [""; 0]);
        let tokens = access.tokens().page().await.expect("a list").tokens;
        assert!(tokens.iter().any(|known| known.id == token.id && known.note == "ci" && known.expires.is_none()));
        assert!(tokens.iter().all(|known| known.id != brief.id || known.expired), "{tokens:?}");
        let me = access.who_am_i().await.expect("an answer");
        assert_eq!((me.user, &me.grants[..]), (None, &[grant(Permission::Admin, "")][..]));
        assert!(me.access_revision > user.set_revision);
    }
    let gone = client(&cluster, follower).access().remove_user("shop").await.expect("it was there");
    assert!(gone.tokens >= 2, "{gone:?}");
    assert_eq!(first.access().tokens().page().await.expect("a list").tokens.len(), 0);
    // What is there to be found is found.
    first.put("a-key-in-the-log", quorate_client::Value::json_text("1")).await.expect("a write");
    cluster.assert_agreement().await;

    for id in cluster.ids() {
        assert!(!cluster.log_text(id).contains(secret), "node {id} told a secret");
        cluster.stop(id).await;
        assert!(holds(&cluster.data_dir(id), b"a-key-in-the-log"));
        assert!(!holds(&cluster.data_dir(id), secret.as_bytes()), "node {id} kept a secret");
        let data = cluster.data_dir(id).display().to_string();
        let printed = succeed("quorate-node", &["check", "--data-dir", &data]).await;
        assert!(printed.contains("is sound"), "{printed}");
    }
}
