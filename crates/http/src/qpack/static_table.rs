//! The static table (RFC 9204, section 3.1 and appendix A).

use bytes::Bytes;

/// Name and value of each entry, by index.
#[rustfmt::skip]
const ENTRIES: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// Indices in the order of the names' lengths, then of names, then of indices: entries of one name follow each
/// other, and a search compares few strings.
const BY_NAME: [u8; ENTRIES.len()] = by_name();

const fn by_name() -> [u8; ENTRIES.len()] {
    let mut order = [0; ENTRIES.len()];
    let mut count = 0;
    while count < ENTRIES.len() {
        // Insertion sort, stable.
        let mut at = count;
        while at > 0 && less(ENTRIES[count].0, ENTRIES[order[at - 1] as usize].0) {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = count as u8;
        count += 1;
    }
    order
}

const fn less(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return a.len() < b.len();
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    false
}

/// The longest name, bytes.
const LONGEST: usize = {
    let last = BY_NAME[ENTRIES.len() - 1] as usize;
    ENTRIES[last].0.len()
};

/// Where in [`BY_NAME`] the names of each length begin; one more for the end.
const BY_LENGTH: [u8; LONGEST + 2] = {
    let mut starts = [0; LONGEST + 2];
    let mut length = 0;
    let mut at = 0;
    while length < starts.len() {
        while at < ENTRIES.len() && ENTRIES[BY_NAME[at] as usize].0.len() < length {
            at += 1;
        }
        starts[length] = at as u8;
        length += 1;
    }
    starts
};

/// For each place in [`BY_NAME`], that of the next name.
const NEXT_NAME: [u8; ENTRIES.len()] = {
    let mut next = [ENTRIES.len() as u8; ENTRIES.len()];
    let mut at = ENTRIES.len() - 1;
    while at > 0 {
        at -= 1;
        let (this, other) = (BY_NAME[at] as usize, BY_NAME[at + 1] as usize);
        let differs = less(ENTRIES[this].0, ENTRIES[other].0);
        next[at] = if differs { at as u8 + 1 } else { next[at + 1] };
    }
    next
};

/// Result of a look-up in the static table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Match {
    /// Name and value are those of this entry.
    Full(u64),
    /// The name is that of this entry, the first one with it.
    Name(u64),
    /// No entry has the name.
    None,
}

/// Finds a field: compares the name with the few of its length, then the value with those of the name.
pub(super) fn find(name: &[u8], value: &[u8]) -> Match {
    if name.len() > LONGEST {
        return Match::None;
    }
    let mut at = usize::from(BY_LENGTH[name.len()]);
    let end = usize::from(BY_LENGTH[name.len() + 1]);
    while at < end {
        let first = BY_NAME[at];
        let next = usize::from(NEXT_NAME[at]);
        if ENTRIES[usize::from(first)].0.as_bytes() == name {
            let same = BY_NAME[at..next].iter();
            let mut full = same.filter(|&&index| ENTRIES[usize::from(index)].1.as_bytes() == value);
            return full.next().map_or(Match::Name(u64::from(first)), |&index| {
                Match::Full(u64::from(index))
            });
        }
        at = next;
    }
    Match::None
}

/// Name and value of entry `index`, without allocation.
pub(super) fn get(index: u64) -> Option<(Bytes, Bytes)> {
    let (name, value) = ENTRIES.get(usize::try_from(index).ok()?)?;
    Some((
        Bytes::from_static(name.as_bytes()),
        Bytes::from_static(value.as_bytes()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found() {
        for (index, (name, value)) in ENTRIES.iter().enumerate() {
            let found = find(name.as_bytes(), value.as_bytes());
            assert_eq!(found, Match::Full(index as u64), "{name}: {value}");
            let (n, v) = get(index as u64).unwrap();
            assert_eq!((&n[..], &v[..]), (name.as_bytes(), value.as_bytes()));
        }
        assert!(get(ENTRIES.len() as u64).is_none());
    }

    #[test]
    fn names_alone_find_the_first_entry() {
        assert_eq!(find(b":status", b"418"), Match::Name(24));
        assert_eq!(find(b":path", b"/x"), Match::Name(1));
        assert_eq!(find(b"x-frame-options", b""), Match::Name(97));
        assert_eq!(find(b"x-frame-option", b"deny"), Match::None);
        assert_eq!(find(b"x-frame-optionss", b"deny"), Match::None);
        assert_eq!(find(b"", b""), Match::None);
        assert_eq!(find(b"zzz", b""), Match::None);
    }
}
