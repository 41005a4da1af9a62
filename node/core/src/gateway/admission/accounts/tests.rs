//! Accounts one beside the other: what each may take, and what is forgotten of it.

use std::net::{IpAddr, Ipv4Addr};

use crate::gateway::admission::accounts::*;

fn limited() -> Arc<Accounts> {
    Accounts::new(AccountLimits { ops_per_second: 5, bytes_per_second: 100, connections_max: 2, watches_max: 1 })
}

fn at(number: u32) -> Account {
    Account::Neighbour(IpAddr::from(Ipv4Addr::from_bits(number)).into())
}

fn spender(accounts: &Arc<Accounts>, number: u32) -> Spender {
    accounts.of(|| at(number)).expect("something is bounded")
}

#[test]
fn one_account_is_bounded_and_another_is_not_touched() {
    let accounts = limited();
    let (one, other) = (spender(&accounts, 1), spender(&accounts, 2));
    let admitted = (0..20).filter(|_| one.admit().is_ok()).count();
    assert!((5..=6).contains(&admitted), "{admitted}");
    let refused = one.admit().expect_err("it has taken all");
    assert!(!refused.retry_after().is_zero() && refused.retry_after() <= Duration::from_millis(400));
    assert!(other.admit().is_ok());
    other.moved(1_000);
    assert!(other.admit().expect_err("too many bytes").retry_after() > Duration::from_secs(8));
}

#[tokio::test]
async fn those_who_are_kept_back_are_before_the_next_one() {
    let accounts = limited();
    let one = spender(&accounts, 1);
    while one.admit().is_ok() {}
    let refused = one.admit().expect_err("it has taken all");
    let keeping: Vec<_> = (0..10).map(|_| one.keep_back(&refused, Duration::from_millis(100))).collect();
    let mut keeping = Box::pin(futures::future::join_all(keeping));
    assert!(futures::poll!(&mut keeping).is_pending());
    let wait = one.admit().expect_err("they are ten").retry_after();
    assert!(wait >= Duration::from_secs(2), "{wait:?}, at five a second");
    keeping.await;
    assert_eq!(one.ledger.kept_back.load(Ordering::Relaxed), 0);
}

#[test]
fn what_an_operation_costs_is_paid_by_the_next() {
    let accounts = limited();
    let one = spender(&accounts, 1);
    assert!(one.admit().is_ok());
    assert!(one.admit().is_ok());
    assert!(one.costs(20).is_ok());
    let wait = one.admit().expect_err("a debt").retry_after();
    assert!(wait > Duration::from_millis(2_500) && wait <= Duration::from_millis(3_200), "{wait:?}");
    // Let in beside it, and large too: it must not take what is owed already.
    let refused = one.costs(20).expect_err("a debt");
    assert!(refused.retry_after() > Duration::from_millis(2_500), "{:?}", refused.retry_after());
    assert!(one.costs(1).is_ok(), "it has paid for one");
}

#[test]
fn watches_are_given_back() {
    let accounts = limited();
    let watch = spender(&accounts, 7).watch().expect("room");
    assert!(spender(&accounts, 7).watch().is_err());
    drop(watch);
    assert!(spender(&accounts, 7).watch().is_ok());
}

#[test]
fn a_network_of_ipv6_is_one_account_and_mapped_addresses_are_those_of_ipv4() {
    let of = |text: &str| Account::Neighbour(text.parse::<IpAddr>().expect("an address").into());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
}

#[test]
fn the_table_has_a_bound_and_forgets_those_who_owe_nothing() {
    let accounts = limited();
    let busy: Vec<_> = (0..limits::ACCOUNTS_MAX as u32).map(|number| spender(&accounts, number)).collect();
    let late = spender(&accounts, u32::MAX);
    assert!(Arc::ptr_eq(&late.ledger, &accounts.others) && late.admit().is_ok());
    drop(busy);
    accounts.swept.store(0, Ordering::Relaxed);
    std::thread::sleep(Duration::from_nanos(2 * limits::ACCOUNTS_SWEEP_NANOS));
    let next = spender(&accounts, u32::MAX);
    assert!(!Arc::ptr_eq(&next.ledger, &accounts.others));
    assert_eq!(accounts.table.read().len(), 1);
}

#[test]
fn without_limits_nothing_is_looked_up() {
    let accounts = Accounts::new(AccountLimits::default());
    assert!(accounts.of(|| panic!("nobody asks who it is")).is_none());
    assert_eq!((accounts.connections_max(), limited().connections_max()), (None, Some(2)));
}
