//! Listings: pages that hang together.

use quorate_api::ListAnswer;

use crate::raw::Server;

async fn page(server: &Server, query: &str) -> ListAnswer {
    let response = server.get(&format!("/v1/kv?{query}")).await;
    assert_eq!(response.status, 200, "{query}: {response:?}");
    serde_json::from_slice(&response.body).expect("a ListAnswer")
}

fn keys(page: &ListAnswer) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.key.text().expect("a text")).collect()
}

async fn filled() -> Server {
    let server = Server::start().await;
    for key in ["a/1", "a/2", "a/3", "a/4", "b/1"] {
        assert_eq!(server.put_json(&format!("/v1/kv/{key}"), "{}").await.status / 100, 2);
    }
    server
}

#[tokio::test]
async fn the_pages_of_a_listing_show_one_revision_whatever_is_written_meanwhile() {
    let server = filled().await;
    let first = page(&server, "prefix=a%2F&limit=2").await;
    assert_eq!(keys(&first), ["a/1", "a/2"]);
    server.ask("DELETE", "/v1/kv/a/3", &[], b"").await;
    server.put_json("/v1/kv/a/5", "{}").await;
    let cursor = first.cursor.expect("more to come");
    let second = page(&server, &format!("cursor={cursor}&limit=1&keys_only")).await;
    assert_eq!(keys(&second), ["a/3"], "as it was at the first page");
    assert_eq!(second.revision, first.revision);
    assert_eq!(second.entries[0].value, None);
    let last = page(&server, &format!("cursor={}", second.cursor.expect("more to come"))).await;
    assert_eq!(keys(&last), ["a/4"]);
    assert_eq!((last.cursor, last.count), (None, 1));
}

#[tokio::test]
async fn ranges_can_be_reversed_bounded_and_counted() {
    let server = filled().await;
    let first = page(&server, "start=a%2F2&end=b&reverse&limit=2").await;
    assert_eq!(keys(&first), ["a/4", "a/3"]);
    let rest = page(&server, &format!("cursor={}", first.cursor.expect("more to come"))).await;
    assert_eq!(keys(&rest), ["a/2"]);
    let counted = page(&server, "prefix=a%2F&count_only").await;
    assert_eq!((counted.count, counted.entries.len()), (4, 0));
    assert_eq!(page(&server, "count_only").await.count, 5);
    assert_eq!(page(&server, "prefix=a%2F&revision=3").await.count, 2, "as it was");
}
