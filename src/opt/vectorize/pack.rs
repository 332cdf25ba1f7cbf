//! One access in place of several.

use super::Access;
use super::tuples::Tuples;
use crate::analysis::def_use::{Fits, is_free, rewrite};
use crate::ori::function::access_size;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role, value};
use smallvec::SmallVec;

/// Bytes of a word.
const WORD: i64 = 4;
/// The byte of a selector that is the sign of another one, and the one that takes a byte of zero.
const SIGN: u32 = 8;
const ZERO: u32 = 4;

/// A word of the joined access.
enum Word {
    /// The register that is loaded or stored.
    Whole(VReg),
    /// Zero is stored.
    Zero,
    /// Parts of it are loaded: each by an instruction, of these bytes from this one on.
    Parts(SmallVec<[(InstId, i64, i64); 4]>),
}

/// Accesses that become one.
pub(super) struct Pack {
    pub members: SmallVec<[InstId; 16]>,
    /// The instruction whose place and operands the new one takes, and its position; the offset
    /// of the first byte.
    place: (InstId, usize),
    offset: Operand,
    words: SmallVec<[Word; 4]>,
    /// The positions of the members.
    positions: SmallVec<[usize; 16]>,
}

/// What happens at a position of a block.
pub(super) enum Edit {
    /// The instruction there goes.
    Remove,
    /// Another one stands before what is there.
    Before(InstId),
}

/// The joined access, and how a block changes.
pub(super) struct Made {
    pub tuple: Operand,
    pub edits: SmallVec<[(usize, Edit); 20]>,
}

impl Pack {
    /// Joins accesses of neighbouring bytes if their registers may be neighbours.
    pub fn new(function: &Function, members: &[&Access], width: i64, tuples: &Tuples) -> Option<Pack> {
        let first = members.first()?.first;
        let stores = function[members[0].inst].op.has(Prop::WritesMemory);
        let mut words = SmallVec::<[Word; 4]>::new();
        for access in members {
            let role = if stores { Role::B } else { Role::D };
            let operand = function.arg(access.inst, role);
            let mut registers = SmallVec::<[VReg; 4]>::new();
            function.for_each_reg(operand, |reg| registers.push(reg));
            if stores && operand == Operand::zero() && access.bytes >= WORD {
                words.extend((0..access.bytes / WORD).map(|_| Word::Zero));
                continue;
            }
            let free = registers.iter().all(|reg| is_free(function, *reg) && function[*reg].file == File::R);
            if registers.is_empty() || operand != operand.plain() || !free {
                return None;
            }
            let at = access.first - first;
            if access.bytes < WORD {
                if stores || at / WORD != (at + access.bytes - 1) / WORD {
                    return None;
                }
                let part = (access.inst, at % WORD, access.bytes);
                match words.last_mut() {
                    Some(Word::Parts(parts)) if at % WORD != 0 => parts.push(part),
                    _ => words.push(Word::Parts(SmallVec::from_iter([part]))),
                }
                continue;
            }
            if registers.len() as i64 * WORD != access.bytes {
                return None;
            }
            words.extend(registers.into_iter().map(Word::Whole));
        }
        let whole: SmallVec<[VReg; 4]> = words.iter().filter_map(Word::register).collect();
        let mixed = whole.len() != words.len();
        // Zeros beside registers would be copied.
        if stores && mixed && !whole.is_empty() {
            return None;
        }
        let agree = tuples.agree(function, &whole) && (!mixed || whole.iter().all(|reg| tuples.is_single(*reg)));
        if words.len() as i64 * WORD != width || !agree {
            return None;
        }
        let place = if stores { members.iter().max_by_key(|a| a.at) } else { members.iter().min_by_key(|a| a.at) };
        let place = place.map(|access| (access.inst, access.at))?;
        let offset = function.arg(members[0].inst, Role::Off);
        let positions = members.iter().map(|access| access.at).collect();
        Some(Pack { members: members.iter().map(|a| a.inst).collect(), place, offset, words, positions })
    }

    /// Makes the access; `None` if the target has no such form.
    pub fn make(&self, function: &mut Function, fits: Fits) -> Option<Made> {
        let access = function.copy_inst(self.place.0);
        let registers: SmallVec<[VReg; 4]> = self.words.iter().filter_map(|word| word.target(function)).collect();
        let tuple = match registers[..] {
            [] => Operand::zero(),
            [one] => Operand::reg(one),
            _ => Operand::vector(function.vector(&registers)),
        };
        let stores = function[access].op.has(Prop::WritesMemory);
        function.set_arg(access, if stores { Role::B } else { Role::D }, tuple);
        function.set_arg(access, Role::Off, self.offset);
        function[access].mods.set(Mod::Size, access_size(self.words.len()).unwrap_or(0));
        if !fits(function, access) {
            return None;
        }
        let mut edits: SmallVec<[(usize, Edit); 20]> = SmallVec::new();
        edits.push((self.place.1, Edit::Before(access)));
        let mut taken = SmallVec::<[InstId; 16]>::new();
        for (word, reg) in self.words.iter().zip(registers) {
            if let Word::Parts(parts) = word {
                parts.iter().for_each(|part| take(function, *part, reg));
                taken.extend(parts.iter().map(|part| part.0));
            }
        }
        let gone = self.members.iter().zip(&self.positions).filter(|(inst, _)| !taken.contains(inst));
        edits.extend(gone.map(|(_, at)| (*at, Edit::Remove)));
        Some(Made { tuple, edits })
    }
}

impl Word {
    fn register(&self) -> Option<VReg> {
        match self {
            Word::Whole(reg) => Some(*reg),
            Word::Zero | Word::Parts(_) => None,
        }
    }

    /// The register of the joined access; none for zero.
    fn target(&self, function: &mut Function) -> Option<VReg> {
        match self {
            Word::Whole(reg) => Some(*reg),
            Word::Zero => None,
            Word::Parts(_) => Some(function.new_reg(File::R)),
        }
    }
}

/// Makes a load of a part of a word a move of its bytes from the word.
fn take(function: &mut Function, (inst, at, bytes): (InstId, i64, i64), word: VReg) {
    let signed = [value::size::S8, value::size::S16].contains(&function[inst].mods.get(Mod::Size));
    let last = (at + bytes - 1) as u32;
    let chosen = |byte: i64| match byte {
        _ if byte < bytes => (at + byte) as u32,
        _ if signed => SIGN | last,
        _ => ZERO,
    };
    let selector = (0..WORD).fold(0, |all, byte| all | chosen(byte) << (4 * byte));
    let (d, selector) = (function.arg(inst, Role::D), function.imm(selector.into()));
    let args = [(Role::D, d), (Role::A, Operand::reg(word)), (Role::B, selector), (Role::C, Operand::zero())];
    rewrite(function, inst, Op::PRMT, &args);
}

/// Carries out edits of a block.
pub(super) fn rebuild(function: &mut Function, block: Block, edits: Vec<(usize, Edit)>) {
    let mut gone = vec![false; function[block].len()];
    let mut before: Vec<(usize, InstId)> = Vec::new();
    for (at, edit) in edits {
        match edit {
            Edit::Remove => gone[at] = true,
            Edit::Before(inst) => before.push((at, inst)),
        }
    }
    crate::sorted::by_key(&mut before, |(at, _)| *at);
    let mut before = before.into_iter().peekable();
    let insts = std::mem::take(&mut function[block]);
    let mut out = Vec::with_capacity(insts.len());
    for (at, inst) in insts.into_iter().enumerate() {
        while let Some((_, new)) = before.next_if(|(place, _)| *place == at) {
            out.push(new);
        }
        if !gone[at] {
            out.push(inst);
        }
    }
    function[block] = out;
}
