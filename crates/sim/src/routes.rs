//! Static routes: from every router the fewest links to every interface; hosts don't forward.

use std::collections::VecDeque;

/// A link in the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// The next link from each router to each interface.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    interfaces: usize,
    /// By node: its row, if it is a router.
    rows: Vec<Option<u32>>,
    /// By row, then by interface.
    next_link: Vec<Option<u32>>,
}

impl Routes {
    /// Searches backwards from the downlink of each interface. Among equally short routes, the link
    /// that was added first is chosen.
    pub(crate) fn new(forwards: &[bool], edges: &[Edge], downlinks: &[u32]) -> Self {
        let interfaces = downlinks.len();
        let mut count = 0;
        let rows: Vec<_> = forwards
            .iter()
            .map(|&forwards| {
                forwards.then(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        let mut next_link = vec![None; count as usize * interfaces];
        // Links between routers only: with thousands of hosts, their links would dominate.
        let mut incoming = vec![Vec::new(); count as usize];
        for (link, edge) in (0u32..).zip(edges) {
            if let (Some(from), Some(to)) = (rows[edge.from as usize], rows[edge.to as usize]) {
                incoming[to as usize].push((link, from));
            }
        }
        let mut queue = VecDeque::new();
        for (interface, &downlink) in downlinks.iter().enumerate() {
            let Some(last) = rows[edges[downlink as usize].from as usize] else {
                continue;
            };
            next_link[last as usize * interfaces + interface] = Some(downlink);
            queue.push_back(last);
            while let Some(row) = queue.pop_front() {
                for &(link, from) in &incoming[row as usize] {
                    let next = &mut next_link[from as usize * interfaces + interface];
                    if next.is_none() {
                        *next = Some(link);
                        queue.push_back(from);
                    }
                }
            }
        }
        Self {
            interfaces,
            rows,
            next_link,
        }
    }

    /// The link from the router `node` to `interface`; `None` if there is no route.
    pub(crate) fn next(&self, node: u32, interface: u32) -> Option<u32> {
        let row = self.rows.get(node as usize).copied().flatten()?;
        let at = row as usize * self.interfaces + interface as usize;
        self.next_link.get(at).copied().flatten()
    }
}
