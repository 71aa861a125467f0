//! Static routes: from every node the fewest links to every interface; hosts don't forward.

use std::collections::VecDeque;

/// A link as the search sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// The link to take from each node towards each interface.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    interfaces: usize,
    /// By node, then by interface.
    next_link: Vec<Option<u32>>,
}

impl Routes {
    /// Searches backwards from the downlink of each interface. Among equally short ways, the link
    /// that was added first wins.
    pub(crate) fn new(nodes: usize, forwards: &[bool], edges: &[Edge], downlinks: &[u32]) -> Self {
        let interfaces = downlinks.len();
        let mut next_link = vec![None; nodes * interfaces];
        let mut incoming = vec![Vec::new(); nodes];
        for (link, edge) in (0u32..).zip(edges) {
            incoming[edge.to as usize].push((link, edge.from));
        }
        let mut queue = VecDeque::new();
        for (interface, &downlink) in downlinks.iter().enumerate() {
            let last = edges[downlink as usize].from;
            next_link[last as usize * interfaces + interface] = Some(downlink);
            queue.push_back(last);
            while let Some(node) = queue.pop_front() {
                if !forwards[node as usize] {
                    continue;
                }
                for &(link, from) in &incoming[node as usize] {
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
            next_link,
        }
    }

    /// The link from `node` towards `interface`; `None` if there is no way.
    pub(crate) fn next(&self, node: u32, interface: u32) -> Option<u32> {
        let at = node as usize * self.interfaces + interface as usize;
        self.next_link.get(at).copied().flatten()
    }
}
