//! Servers that ask who calls: root may do all, client what begins with /service/.

use std::env;

use etcd_client::{Client, ConnectOptions, Error, GetOptions, PutOptions, WatchOptions};

use crate::{Context, Outcome, refused};

pub const CASES: &[crate::Case] =
    &[("log_in", |of| Box::pin(log_in(of.servers))), ("who_cannot_log_in", |of| Box::pin(who_cannot_log_in(of)))];

async fn connect(servers: &[String], name: &str, password: String) -> Result<Client, Error> {
    Client::connect(servers, Some(ConnectOptions::new().with_user(name, password))).await
}

async fn log_in(servers: Vec<String>) -> Outcome {
    let mut root = connect(&servers, "root", env::var("CONFORMANCE_ROOT_PASSWORD").expect("a password")).await?;
    let mut user = connect(&servers, "client", env::var("CONFORMANCE_CLIENT_PASSWORD").expect("a password")).await?;
    root.put("/other", "secret", None).await?;
    root.put("/service/a", "one", None).await?;
    assert_eq!(user.get("/service/a", None).await?.kvs()[0].value_str()?, "one");
    user.put("/service/a", "two", None).await?;
    let denied = "PermissionDenied: etcdserver: permission denied";
    assert_eq!(refused(user.put("/other", "x", None).await), denied);
    assert_eq!(refused(user.get("/other", None).await), denied);
    assert_eq!(refused(user.get("", Some(GetOptions::new().with_all_keys())).await), denied);
    assert_eq!(refused(user.user_list().await), denied);
    let lease = user.lease_grant(60, None).await?.id();
    user.put("/service/leased", "x", Some(PutOptions::new().with_lease(lease))).await?;
    user.lease_keep_alive(lease).await?;
    user.lease_revoke(lease).await?;
    let mut stream = user.watch("/service/", Some(WatchOptions::new().with_prefix())).await?;
    assert!(stream.message().await?.expect("a frame").created());
    root.put("/service/a", "three", None).await?;
    assert_eq!(stream.message().await?.expect("a frame").events().len(), 1);
    stream.watch("/other", None).await?;
    let frame = stream.message().await?.expect("a frame");
    assert!(frame.created() && frame.canceled() && frame.watch_id() == -1, "{frame:?}");
    assert_eq!(frame.cancel_reason(), "rpc error: code = PermissionDenied desc = etcdserver: permission denied");
    // The stream stays.
    root.put("/service/a", "four", None).await?;
    assert_eq!(stream.message().await?.expect("a frame").events().len(), 1);
    Ok(())
}

async fn who_cannot_log_in(mut of: Context) -> Outcome {
    assert_eq!(refused(of.etcd.get("/service/a", None).await), "InvalidArgument: etcdserver: user name is empty");
    for name in ["root", "nobody"] {
        assert_eq!(
            refused(connect(&of.servers, name, "wrong".to_owned()).await),
            "InvalidArgument: etcdserver: authentication failed, invalid user ID or password"
        );
    }
    Ok(())
}
