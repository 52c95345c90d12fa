//! Names: what is one, what is not, and that text forms come back the same.

use onward_core::{Inlet, Name, StreamName};
use onward_proves::proves;

#[test]
fn a_name_without_namespace_is_in_the_default_one() {
    let name: Name = "emails".parse().expect("a name");
    assert_eq!(
        (name.namespace(), name.local(), name.to_string()),
        ("default", "emails", "emails".to_owned())
    );
    let same: Name = "default/emails".parse().expect("a name");
    assert_eq!(name, same);
}

#[test]
fn inlets_are_queues_or_subscriptions_by_their_text() {
    assert!(matches!("shop/emails".parse(), Ok(Inlet::Queue(_))));
    let inlet: Inlet = "shop/orders:analytics".parse().expect("a subscription");
    assert!(
        matches!(&inlet, Inlet::Subscription { topic, name } if topic.local() == "orders" && &**name == "analytics")
    );
    assert_eq!(inlet.to_string().parse::<Inlet>().expect("own output"), inlet);
}

#[test]
#[proves("T53")]
fn what_is_not_a_name_is_refused_with_an_example() {
    let long = "a".repeat(121);
    for wrong in ["", "/", "a/", "/a", "A", "a b", "a/b/c", "-a", ".", "ü", "a\n", "../x", long.as_str()] {
        let error = wrong.parse::<Name>().expect_err(wrong);
        assert!(error.to_string().contains("as in `emails`"), "{wrong:?}: {error}");
    }
}

#[test]
fn a_stream_is_in_the_category_before_its_first_dash() {
    let name: StreamName = "bank/account-47-11".parse().expect("a stream");
    assert_eq!((name.namespace(), name.category(), name.local()), ("bank", "account", "account-47-11"));
}
