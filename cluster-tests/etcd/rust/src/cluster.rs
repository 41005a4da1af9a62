//! Maintenance, members, and users.

use etcd_client::{
    AlarmAction, AlarmOptions, AlarmType, Client, ConnectOptions, MemberAddOptions, Permission, PermissionType,
    RoleRevokePermissionOptions, UserAddOptions,
};

use crate::{Context, Outcome, cases, eventually, refused};

cases! {
    status, hashes, defragment, snapshot, alarms, members, a_member_more_and_less, leader_is_moved, roles_and_users, permission_on_one_key,
    users_with_passwords, authentication_is_turned_on,
}

async fn status(mut of: Context) -> Outcome {
    of.put("a", "one").await?;
    let status = of.etcd.status().await?;
    assert!(
        status.version().split('.').count() == 3 && status.version().split('.').all(|part| part.parse::<u32>().is_ok()),
        "{}",
        status.version()
    );
    assert!(
        status.db_size() > 0
            && status.raft_used_db_size() > 0
            && status.raft_index() > 0
            && status.raft_applied_index() > 0
    );
    assert!(status.raft_term() > 0 && status.leader() != 0 && !status.is_learner() && status.errors().is_empty());
    Ok(())
}

async fn hashes(mut of: Context) -> Outcome {
    let revision = of.put("a", "one").await?;
    of.etcd.hash().await?;
    // All members have the same state at a revision.
    let mut hashes = Vec::new();
    for server in &of.servers {
        let mut one = Client::connect([server], None).await?;
        one.get("a", None).await?;
        let answer = one.hash_kv(revision).await?;
        hashes.push((answer.hash(), answer.compact_version()));
    }
    assert!(hashes.iter().all(|each| *each == hashes[0]), "{hashes:?}");
    of.put("a", "two").await?;
    assert_eq!(of.etcd.hash_kv(revision).await?.hash(), hashes[0].0, "the hash of an old revision changed");
    let before = hashes[0].0;
    // The member asked may not have the last write yet.
    let etcd = of.etcd.clone();
    eventually("another state, another hash", || {
        let mut etcd = etcd.clone();
        async move { Ok(etcd.hash_kv(0).await?.hash() != before) }
    })
    .await
}

async fn defragment(mut of: Context) -> Outcome {
    of.etcd.defragment().await?;
    Ok(())
}

async fn snapshot(mut of: Context) -> Outcome {
    of.put("a", "one").await?;
    let mut stream = of.etcd.snapshot().await?;
    let (mut bytes, mut remaining) = (0, u64::MAX);
    while let Some(piece) = stream.message().await? {
        bytes += piece.blob().len();
        assert!(piece.remaining_bytes() <= remaining);
        remaining = piece.remaining_bytes();
    }
    assert!(bytes > 1000 && remaining == 0, "{bytes} bytes, {remaining} remain");
    Ok(())
}

async fn alarms(mut of: Context) -> Outcome {
    let member = of.etcd.status().await?.header().expect("a header").member_id();
    let mut options = AlarmOptions::new();
    options.with_member(member);
    assert!(of.etcd.alarm(AlarmAction::Get, AlarmType::None, None).await?.alarms().is_empty());
    let raised = of.etcd.alarm(AlarmAction::Activate, AlarmType::Nospace, Some(options.clone())).await?;
    assert_eq!((raised.alarms()[0].member_id(), raised.alarms()[0].alarm()), (member, AlarmType::Nospace));
    let text = refused(of.etcd.put(of.key("a"), "one", None).await);
    of.etcd.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options)).await?;
    assert_eq!(text, "ResourceExhausted: etcdserver: mvcc: database space exceeded");
    assert!(of.etcd.alarm(AlarmAction::Get, AlarmType::None, None).await?.alarms().is_empty());
    of.put("a", "one").await?;
    Ok(())
}

async fn members(mut of: Context) -> Outcome {
    let answer = of.etcd.member_list().await?;
    assert_eq!(answer.members().len(), of.servers.len());
    for member in answer.members() {
        assert!(member.id() != 0 && !member.name().is_empty() && !member.is_learner());
        assert!(member.client_urls().iter().chain(member.peer_urls()).all(|url| url.starts_with("http")));
    }
    Ok(())
}

async fn a_member_more_and_less(mut of: Context) -> Outcome {
    let before = of.etcd.member_list().await?.members().len();
    let added = of.etcd.member_add(["http://127.0.0.1:9"], Some(MemberAddOptions::new().with_is_learner())).await?;
    let member = added.member().expect("a member");
    assert!(
        member.is_learner() && member.peer_urls() == ["http://127.0.0.1:9"] && added.member_list().len() == before + 1
    );
    let promoted = of.etcd.member_promote(member.id()).await;
    of.etcd.member_update(member.id(), ["http://127.0.0.1:10".to_owned()]).await?;
    let removed = of.etcd.member_remove(member.id()).await?;
    assert_eq!(
        refused(promoted),
        "FailedPrecondition: etcdserver: can only promote a learner member which is in sync with leader"
    );
    assert_eq!(removed.members().len(), before);
    assert_eq!(refused(of.etcd.member_remove(member.id()).await), "NotFound: etcdserver: member not found");
    Ok(())
}

async fn leader_is_moved(mut of: Context) -> Outcome {
    let ids: Vec<u64> = of.etcd.member_list().await?.members().iter().map(|member| member.id()).collect();
    let leader = of.etcd.status().await?.leader();
    let target = *ids.iter().find(|id| **id != leader).expect("a follower");
    // Only the leader can do that; the client talks to any.
    for server in &of.servers {
        let mut one = Client::connect([server], None).await?;
        if one.status().await?.header().expect("a header").member_id() == leader {
            one.move_leader(target).await?;
        } else {
            assert_eq!(refused(one.move_leader(target).await), "FailedPrecondition: etcdserver: not leader");
            continue;
        }
        break;
    }
    let etcd = of.etcd.clone();
    eventually("another leads", || {
        let mut etcd = etcd.clone();
        async move { Ok(etcd.status().await?.leader() == target) }
    })
    .await
}

async fn roles_and_users(mut of: Context) -> Outcome {
    let etcd = &mut of.etcd;
    etcd.role_add("readers").await?;
    assert_eq!(refused(etcd.role_add("readers").await), "FailedPrecondition: etcdserver: role name already exists");
    etcd.role_grant_permission("readers", Permission::read("/r/").with_prefix()).await?;
    let permissions = etcd.role_get("readers").await?.permissions();
    let [permission] = &permissions[..] else { panic!("other permissions: {permissions:?}") };
    assert_eq!(
        (permission.key(), permission.range_end(), permission.get_type()),
        (&b"/r/"[..], &b"/r0"[..], PermissionType::Read as i32)
    );
    assert!(etcd.role_list().await?.roles().contains(&"readers".to_owned()));
    etcd.user_add("reader", "", Some(UserAddOptions::new().with_no_pwd())).await?;
    let again = etcd.user_add("reader", "", Some(UserAddOptions::new().with_no_pwd())).await;
    assert_eq!(refused(again), "FailedPrecondition: etcdserver: user name already exists");
    etcd.user_grant_role("reader", "readers").await?;
    assert_eq!(etcd.user_get("reader").await?.roles(), ["readers"]);
    assert!(etcd.user_list().await?.users().contains(&"reader".to_owned()));
    etcd.user_revoke_role("reader", "readers").await?;
    assert!(etcd.user_get("reader").await?.roles().is_empty());
    etcd.role_revoke_permission("readers", "/r/", Some(RoleRevokePermissionOptions::new().with_prefix())).await?;
    assert!(etcd.role_get("readers").await?.permissions().is_empty());
    etcd.user_delete("reader").await?;
    etcd.role_delete("readers").await?;
    assert_eq!(refused(etcd.user_get("reader").await), "FailedPrecondition: etcdserver: user name not found");
    assert_eq!(refused(etcd.role_get("readers").await), "FailedPrecondition: etcdserver: role name not found");
    Ok(())
}

async fn permission_on_one_key(mut of: Context) -> Outcome {
    of.etcd.role_add("one").await?;
    let granted = of.etcd.role_grant_permission("one", Permission::read_write("one")).await;
    of.etcd.role_delete("one").await?;
    granted?;
    Ok(())
}

async fn users_with_passwords(mut of: Context) -> Outcome {
    of.etcd.user_add("someone", "somepw", None).await?;
    of.etcd.user_change_password("someone", "another").await?;
    of.etcd.user_delete("someone").await?;
    Ok(())
}

async fn authentication_is_turned_on(mut of: Context) -> Outcome {
    assert_eq!(refused(of.etcd.auth_enable().await), "FailedPrecondition: etcdserver: root user does not exist");
    of.etcd.user_add("root", "rootpw", None).await?;
    of.etcd.role_add("root").await?;
    of.etcd.user_grant_role("root", "root").await?;
    of.etcd.auth_enable().await?;
    let mut root = Client::connect(&of.servers, Some(ConnectOptions::new().with_user("root", "rootpw"))).await?;
    root.auth_disable().await?;
    root.user_delete("root").await?;
    root.role_delete("root").await?;
    Ok(())
}
