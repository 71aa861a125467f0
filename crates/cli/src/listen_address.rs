//! Parses a listen address.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// An address with its port, `[::]:4433`; or a port alone, `:4433` or `4433`, for every address of this
/// machine; or a name of this machine, `localhost:4433`, of whose addresses the first IPv4 one is used.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let everywhere = |port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    let expected = || {
        "an address with its port was expected, such as [::]:4433, 127.0.0.1:443, :4433 or \
         localhost:4433"
            .to_owned()
    };
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(everywhere(port));
    }
    let (name, port) = text.rsplit_once(':').ok_or_else(expected)?;
    if port.parse::<u16>().is_err() || name.is_empty() || name.contains([':', '[', ']', '/']) {
        return Err(expected());
    }
    let addresses: Vec<SocketAddr> = text
        .to_socket_addrs()
        .map_err(|_| format!("{name} is not a name of this machine"))?
        .collect();
    let first = addresses.iter().find(|address| address.is_ipv4());
    first
        .or(addresses.first())
        .copied()
        .ok_or_else(|| format!("{name} has no address"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ports_names_and_addresses() {
        for (text, expected) in [
            ("[::]:4433", "[::]:4433"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            (":4434", "[::]:4434"),
            ("4434", "[::]:4434"),
            ("localhost:4434", "127.0.0.1:4434"),
        ] {
            assert_eq!(
                parse(text),
                Ok(expected.parse().expect("an address")),
                "{text}"
            );
        }
        for text in [
            "",
            ":",
            "x",
            "::",
            "localhost",
            "localhost:",
            ":70000",
            "-1",
            "a/b:1",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("such as [::]:4433"), "{text}: {error}");
        }
    }
}
