//! By how many registers the pressure would change if an instruction came next and behind it all
//! that only it waits for.

use super::dependences::Dependences;
use super::sweep::Sweep;
use super::touches::Touches;
use crate::ori::{Function, VReg};
use cranelift_entity::EntityRef;

/// The most instructions of a tree that are looked at.
const LARGEST: u32 = 64;

/// Tables of the function that all trees use in turn.
pub struct Trees {
    /// The last tree that began or ended each register, and the last one that waited for each
    /// instruction, with what that still waits for itself.
    mark: Vec<u32>,
    waits: Vec<(u32, u32)>,
    tree: u32,
    next: Vec<u32>,
    begun: Vec<VReg>,
    ended: Vec<VReg>,
}

impl Trees {
    /// For the regions of a function.
    pub fn new(function: &Function) -> Trees {
        let mark = vec![0; function.regs().len()];
        Trees { mark, waits: Vec::new(), tree: 0, next: Vec::new(), begun: Vec::new(), ended: Vec::new() }
    }

    /// The change by the tree of an instruction. `after` counts what must still stand behind each.
    pub fn change(&mut self, sweep: &Sweep, touches: &Touches, graph: &Dependences, after: &[u32], at: u32) -> i32 {
        self.tree += 1;
        self.waits.resize(self.waits.len().max(after.len()), (0, 0));
        self.next.clear();
        self.next.push(at);
        let mut visits = 0;
        while let Some(at) = self.next.pop() {
            visits += 1;
            if visits > LARGEST {
                break;
            }
            self.visit(sweep, touches, at);
            for before in &graph.before[at as usize] {
                let (tree, waits) = &mut self.waits[before.at as usize];
                if *tree != self.tree {
                    (*tree, *waits) = (self.tree, after[before.at as usize]);
                }
                *waits -= 1;
                if *waits == 0 {
                    self.next.push(before.at);
                }
            }
        }
        // What began and ended within the tree is unmarked, or twice in the list.
        let Trees { mark, tree, begun, ended, .. } = self;
        let begun = begun.drain(..).filter(|reg| std::mem::take(&mut mark[reg.index()]) == *tree);
        sweep.sum(begun.map(|reg| (reg, 1)).chain(ended.drain(..).map(|reg| (reg, -1)))).general
    }

    fn visit(&mut self, sweep: &Sweep, touches: &Touches, at: u32) {
        for touch in touches.of(at).iter().filter(|touch| touch.is_general()) {
            let (lives, mark) = (sweep.contains(touch.reg), &mut self.mark[touch.reg.index()]);
            if touch.ends {
                let marked = std::mem::replace(mark, self.tree) == self.tree;
                match (lives, marked) {
                    (true, false) => self.ended.push(touch.reg),
                    (true, true) => {}
                    (false, _) => *mark = 0,
                }
            }
            if touch.reads && !lives && std::mem::replace(mark, self.tree) != self.tree {
                self.begun.push(touch.reg);
            }
        }
    }
}
