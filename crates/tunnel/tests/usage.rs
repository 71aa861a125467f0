//! What tunnels use of a proxy's limits: lookups of names, counts that outlast a proxy, and new tunnels by target.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use http::StatusCode;
use swiftwater_tunnel::proxy::{
    Access, Limits, ProxyConfig, SystemResolver, Token, TunnelProxy, TunnelUsage,
};
use swiftwater_tunnel::target::Target;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::stage::{Names, Stage, config, echo, guard, refused, token};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_names_of_one_user_keep_no_other_waiting() {
    guard(async {
        let bob = Token::new("bob", "the-secret-of-another").unwrap();
        let quick = echo().await;
        let address = format!("127.0.0.1:{}", quick.port()).parse().unwrap();
        let names = Names(BTreeMap::from([("quick.example", vec![address])]));
        let config = ProxyConfig {
            access: Access::Tokens([token(), bob.clone()].into()),
            limits: Limits {
                tunnels_per_user: 40,
                resolution: Duration::from_millis(1500),
                ..Limits::default()
            },
            ..config()
        };
        let stage = Stage::serving(TunnelProxy::with_resolver(config, names));
        let alice = stage.client();
        let slow = Target::new("slow.example", 443).unwrap();
        let mut attempts = JoinSet::new();
        for _ in 0..30 {
            let (alice, slow) = (alice.clone(), slow.clone());
            attempts.spawn(async move { refused(alice.open(&slow).await) });
        }
        while let Some(refusal) = attempts.join_next().await {
            assert_eq!(refusal.unwrap().0, StatusCode::GATEWAY_TIMEOUT);
        }
        // Lookups that nobody waits for any more go on, and are hers.
        let quick_name = Target::new("quick.example", quick.port()).unwrap();
        let (status, _) = refused(alice.open(&quick_name).await);
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
        let bob = stage.client_with(Some(&bob));
        bob.open(&quick_name).await.unwrap();
        // An address needs none. Tunnels whose name is looked up count, too.
        let mut tunnels = Vec::new();
        let full = loop {
            match alice.open(&quick).await {
                Ok(tunnel) => tunnels.push(tunnel),
                Err(error) => break refused::<()>(Err(error)),
            }
        };
        assert_eq!(full.0, StatusCode::TOO_MANY_REQUESTS);
        // Sixteen lookups go on.
        assert_eq!(tunnels.len(), 40 - 16);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_count_at_the_proxy_that_replaces_theirs() {
    guard(async {
        let usage = TunnelUsage::default();
        let config = |tunnels_per_user| ProxyConfig {
            limits: Limits {
                tunnels_per_user,
                ..Limits::default()
            },
            usage: usage.clone(),
            ..config()
        };
        let before = Stage::with(config(1));
        let target = echo().await;
        let tunnel = before.client().open(&target).await.unwrap();
        let after = Stage::with(config(2));
        let second = after.client().open(&target).await.unwrap();
        let (status, _) = refused(after.client().open(&target).await);
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        drop(tunnel);
        before.until(|stats| stats.closed == 1).await;
        after.client().open(&target).await.unwrap();
        drop(second);
        // A usage of its own is another matter.
        let other = Stage::with(ProxyConfig {
            usage: TunnelUsage::default(),
            ..config(1)
        });
        other.client().open(&target).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tunnels_count_for_the_address_that_is_used() {
    guard(async {
        const NAMES: [&str; 8] = [
            "a.example",
            "b.example",
            "c.example",
            "d.example",
            "e.example",
            "f.example",
            "g.example",
            "h.example",
        ];
        let victim = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let victim = victim.local_addr().unwrap();
        // At the first address of each name nobody listens.
        let names = NAMES.iter().enumerate().map(|(number, name)| {
            let other = format!("127.0.1.{}:{}", number + 1, victim.port());
            (*name, vec![other.parse().unwrap(), victim])
        });
        let mut config = config();
        config.limits.new_per_target = NonZeroU64::new(1);
        let names = Names(names.collect());
        let stage = Stage::serving(TunnelProxy::with_resolver(config, names));
        let mut opened = 0;
        let start = std::time::Instant::now();
        for name in NAMES {
            let target = Target::new(name, victim.port()).unwrap();
            match stage.client().open_tcp(&target).await {
                Ok(_) => opened += 1,
                Err(error) => {
                    let (status, _) = refused::<()>(Err(error));
                    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
                }
            }
        }
        let most = 1 + start.elapsed().as_secs_f64().ceil() as u64;
        assert!((1..=most).contains(&opened), "{opened}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_resolver_of_the_system_is_asked() {
    guard(async {
        let target = echo().await;
        let name = Target::new("localhost", target.port()).unwrap();
        let stage = Stage::serving(TunnelProxy::with_resolver(config(), SystemResolver));
        let mut tunnel = stage.client().open(&name).await.unwrap();
        tunnel.send(b"hello").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "hello");
    })
    .await;
}
