//! Lowers copies and reductions of boxes of tensors, and operations on tensor maps.
//!
//! The unit takes its operands from uniform registers and acts once, however many lanes execute the
//! instruction: so each lane issues its own copy alone, one after the other. The first operand has
//! the address in shared memory, the barrier and the coordinates in adjacent registers, as far as
//! the instruction has them. A map is changed by loads and stores of its words. Source: ptxas
//! 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::bulk::{Alone, is_wide, l2_action, later, operation, several};
use super::memory::address::{Place, Window};
use super::memory::memory_model::Order;
use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::build::int::LUT_INSERT;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::lowering::{MapField, MapValue, map_writes};
use crate::tables::memory::{Access, OrderRow};
use crate::tables::ptx::{BulkTo, Op as PtxOp, ScalarType, Scope, Semantics, Space, TensorMode};
use crate::tables::{Feature, Mod, Op, Role, value};

/// Uniform registers of the operands, besides those of a cache policy: written right before each
/// use, whichever lanes run.
const WORDS: [u16; 7] = [8, 9, 10, 11, 12, 13, 14];
const MAP: [u16; 2] = [16, 17];
const REST: [u16; 2] = [18, 19];
/// Selects the low halves of the two sources of PRMT, and their lowest bytes.
const LOW_HALVES: u32 = 0x5410;
const LOW_BYTES: u32 = 0x0040;
/// Bits of an offset of a pixel, where a box has three dimensions of them, and of a halo.
const OFFSET_BITS: u32 = 5;
const HALO_BITS: u32 = 11;
/// All scoreboards.
const EVERY_SCOREBOARD: i64 = 0x3f;
/// Bytes of a word, as a power of two.
const WORD: u32 = 2;
/// Registers of the arguments where the driver does a copy: the first one, that of the first
/// coordinate, and that of the barrier.
const FIRST_ARGUMENT: u16 = 4;
const FIRST_COORDINATE: u16 = 8;
const BARRIER: u16 = 14;
/// Where a mask of blocks is, if there is one.
const MASK: u16 = 13;
/// Operands of `elemtype` and `swizzle_mode` that not all targets have.
const NARROW_TYPES: u64 = 13;
const SWIZZLE_96: u64 = 4;

/// A copy of a box.
struct Copy {
    op: Op,
    mods: Vec<M>,
    words: Vec<Operand>,
    map: [Operand; 2],
    /// Offsets of pixels and a mask of blocks.
    rest: Vec<Operand>,
    policy: Option<ast::Operand>,
}

impl Builder<'_> {
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`,
    /// `cp.async.bulk.prefetch.tensor` and `applypriority.async.bulk.tensor`
    pub fn copy_tensor(&mut self, inst: &ast::Instruction) -> Lowered {
        let m = &inst.mods;
        let by_call = self.is_by_call(inst);
        let all = inst.operands.as_slice();
        let (op, shared, tensor, rest) = match (inst.op, m.bulk_to, all) {
            (PtxOp::CpAsyncBulkPrefetchTensor | PtxOp::ApplypriorityAsyncBulkTensor, _, [tensor, rest @ ..]) => {
                (Op::UTMAPF, None, tensor, rest)
            }
            (PtxOp::CpReduceAsyncBulkTensor, _, [tensor, from, rest @ ..]) => (Op::UTMREDG, Some(from), tensor, rest),
            (_, Some(BulkTo::Global), [tensor, from, rest @ ..]) => (Op::UTMALST, Some(from), tensor, rest),
            (_, _, [to, tensor, rest @ ..]) => (Op::UTMALDG, Some(to), tensor, rest),
            _ => return Err(Refusal::NotBuilt),
        };
        let mut rest = rest.iter();
        let mut words = Vec::new();
        if let Some(shared) = shared {
            words.push(self.shared_word(shared)?);
        }
        if op == Op::UTMALDG {
            words.push(self.shared_word(rest.next().ok_or(Refusal::NotBuilt)?)?);
        }
        let (map, coordinates) = self.tensor(tensor)?;
        words.extend(coordinates);
        let mut mods = vec![(Mod::TmaDim, m.dimensions() as u8 - 1)];
        mods.extend(mode(m.tensor_mode));
        mods.extend(l2_action(inst));
        // A block that is alone copies to itself.
        mods.extend(several(inst).filter(|_| !by_call));
        let pair = m.cta_group.is_some_and(|group| group.name() == "cta_group::2");
        mods.extend(pair.then_some(TWO_BLOCKS));
        if let Some(atom) = m.atom_op {
            mods.push((Mod::TmaOp, operation(Some(atom))?));
        }
        let with_offsets = op != Op::UTMALST && op != Op::UTMREDG && is_image(m.tensor_mode);
        let offsets = match rest.next().filter(|_| with_offsets) {
            Some(operand) => Some(self.pixel_offsets(operand, m.tensor_mode)?),
            None => None,
        };
        let mut rest = all.iter().rev();
        let policy = if m.cache_hint { rest.next().cloned() } else { None };
        let mask = match rest.next().filter(|_| m.multicast.is_some()) {
            Some(operand) => Some(self.mask_of_blocks(inst, operand, by_call)?),
            None => None,
        };
        let zero = Operand::zero();
        let rest = match (offsets, mask.filter(|_| !by_call)) {
            (None, None) => Vec::new(),
            (low, Some(high)) if is_wide(inst) => low.into_iter().chain([high]).collect(),
            (low, high) => vec![self.halves(LOW_HALVES, low.unwrap_or(zero), high.unwrap_or(zero))],
        };
        if !by_call {
            return self.issue_tensor(Copy { op, mods, words, map, rest, policy });
        }
        let mut stack = self.policy_words(policy.as_ref())?.to_vec();
        let image = is_image(m.tensor_mode);
        if image {
            let offsets = self.offsets_on_stack(&inst.operands[3])?;
            stack.splice(..0, offsets);
        }
        let [to, barrier, corner @ ..] = words.as_slice() else { return Err(Refusal::NotBuilt) };
        let mut registers: Vec<(u16, Operand)> = (FIRST_ARGUMENT..).zip([*to, zero, map[0], map[1]]).collect();
        registers.extend((FIRST_COORDINATE..).zip(corner.iter().copied()));
        registers.extend(mask.map(|mask| (MASK, mask)));
        registers.extend((BARRIER..).zip([*barrier, zero]));
        let alone = Alone::of(inst, *to, mask.unwrap_or(zero));
        let name = format!(
            "__cuda_syscall_cp_async_bulk_tensor_{}d_{}_{}",
            m.dimensions(),
            if image { "im2col" } else { "tile" },
            alone.name()
        );
        let copy = Copy { op, mods, words, map, rest, policy };
        self.own_or_by_call(alone, |b| b.issue_tensor(copy), |b| b.call_driver(name, &registers, &stack))
    }

    fn issue_tensor(&mut self, copy: Copy) -> Lowered {
        let Copy { op, mods, words, map, rest, policy } = copy;
        self.lane_by_lane(|b| {
            let mut args = vec![(Role::A, b.uniform(&WORDS[..words.len()], &words)), (Role::B, b.uniform(&MAP, &map))];
            if !rest.is_empty() {
                args.push((Role::C, b.uniform(&REST[..rest.len()], &rest)));
            }
            if let Some(policy) = &policy {
                args.push((Role::E, b.policy(policy)?));
            }
            b.put(op, &mods, &args);
            Ok(())
        })
    }

    /// `[map, {c0, c1}]`: the address of the map, and the coordinates.
    fn tensor(&mut self, operand: &ast::Operand) -> Lowered<([Operand; 2], Vec<Operand>)> {
        let OperandKind::Address(address) = &operand.kind else { return Err(Refusal::NotBuilt) };
        let [ast::Operand { kind: OperandKind::Vector(list), .. }] = &address.rest[..] else {
            return Err(Refusal::NotBuilt);
        };
        let coordinates = list.iter().map(|c| self.source_word(c, ScalarType::S32)).collect::<Lowered<_>>()?;
        let map = ast::Address { rest: ast::Rest::default(), ..address.clone() };
        let map = ast::Operand { kind: OperandKind::Address(map), pos: operand.pos };
        Ok((self.map_address(&map, None)?, coordinates))
    }

    /// The generic address of a map.
    fn map_address(&mut self, operand: &ast::Operand, space: Option<Space>) -> Lowered<[Operand; 2]> {
        let place = self.place(operand, space)?;
        let base = if place.offset == 0 { place.base } else { self.add_offset(place.base, place.offset) };
        Ok(self.words(base))
    }

    /// The generic address of a map in a constant bank.
    fn map_in_bank(&mut self, operand: &ast::Operand, space: Space) -> Lowered<[Operand; 2]> {
        let place = self.place(operand, Some(space))?;
        if !matches!(place.window, Window::Bank(_)) {
            return Err(Refusal::NotBuilt);
        }
        let (sum, amount) = (self.temp(), self.imm(place.offset as u32));
        self.add(sum, amount, place.base);
        let (inside, generic) = (self.pair_of([sum, Operand::zero()]), self.temp_pair());
        self.space_to_generic(generic, inside, space)?;
        Ok(self.words(generic))
    }

    /// Halves or bytes of two words beside each other.
    fn halves(&mut self, selector: u32, low: Operand, high: Operand) -> Operand {
        let (both, selector) = (self.temp(), self.imm(selector));
        let [low, high] = [low, high].each(|word| self.in_reg_unless_zero(word));
        let args = [(Role::D, both), (Role::A, low), (Role::B, selector), (Role::C, high)];
        self.put(Op::PRMT, &[], &args);
        both
    }

    /// The offsets of pixels in the low half of a word.
    fn pixel_offsets(&mut self, operand: &ast::Operand, mode: Option<TensorMode>) -> Lowered<Operand> {
        let OperandKind::Vector(list) = &operand.kind else { return Err(Refusal::NotBuilt) };
        let words = list.iter().map(|o| self.source_word(o, ScalarType::U16)).collect::<Lowered<Vec<_>>>()?;
        let step = match (mode, words.as_slice()) {
            (_, [only]) => return Ok(*only),
            (Some(TensorMode::Im2col), [first, second]) => return Ok(self.halves(LOW_BYTES, *first, *second)),
            (Some(TensorMode::Im2col), _) => OFFSET_BITS,
            _ => HALO_BITS,
        };
        let mut sum = Operand::zero();
        for (i, word) in words.into_iter().enumerate() {
            let word = self.halves(LOW_HALVES, word, Operand::zero());
            let (shifted, amount, more) = (self.temp(), self.imm(step * i as u32), self.temp());
            self.shf(&SHF_L, shifted, word, amount, Operand::zero());
            self.add(more, shifted, sum);
            sum = more;
        }
        Ok(sum)
    }

    /// The offsets of pixels as the driver takes them: of 16 bits each.
    fn offsets_on_stack(&mut self, operand: &ast::Operand) -> Lowered<[Operand; 2]> {
        let OperandKind::Vector(list) = &operand.kind else { return Err(Refusal::NotBuilt) };
        let mut words = list.iter().map(|o| self.source_word(o, ScalarType::U16)).collect::<Lowered<Vec<_>>>()?;
        words.resize(4, Operand::zero());
        Ok([self.halves(LOW_HALVES, words[0], words[1]), self.halves(LOW_HALVES, words[2], words[3])])
    }

    /// `prefetch.tensormap`
    pub fn prefetch_map(&mut self, inst: &ast::Instruction) -> Lowered {
        let map = match inst.op {
            PtxOp::PrefetchTensormap => self.map_address(&inst.operands[0], None)?,
            PtxOp::PrefetchConstTensormap => self.map_in_bank(&inst.operands[0], Space::Const)?,
            _ => self.map_in_bank(&inst.operands[0], Space::ParamEntry)?,
        };
        self.lane_by_lane(|b| {
            let at = b.uniform(&MAP, &map);
            b.put(Op::UTMACCTL, &[PREFETCH_MAP], &[(Role::A, at)]);
            Ok(())
        })
    }

    /// `fence.proxy.tensormap::generic.acquire`: once all that was loaded has come, what the unit
    /// keeps of the map is dropped.
    pub fn acquire_map(&mut self, inst: &ast::Instruction) -> Lowered {
        let map = self.map_address(&inst.operands[0], None)?;
        let every = self.literal(EVERY_SCOREBOARD);
        self.lane_by_lane(|b| {
            b.put(Op::DEPBAR, &[], &[(Role::Mask, every)]);
            let at = b.uniform(&MAP, &map);
            if b.has(Feature::TensorMapConstantCache) {
                let cctl = b.put(Op::CCTL, &[CONSTANT_CACHE, DEEP], &[(Role::Ub, at)]);
                b.f[cctl].guard = b.turn;
            }
            b.put(Op::UTMACCTL, &[DROP_MAP], &[(Role::A, at)]);
            Ok(())
        })
    }

    /// `tensormap.cp_fenceproxy`: each lane publishes a word of the map.
    pub fn publish_map(&mut self, inst: &ast::Instruction) -> Lowered {
        let [to, from, ..] = inst.operands.as_slice() else { return Err(Refusal::NotBuilt) };
        let scope = inst.mods.scope.unwrap_or(Scope::Sys);
        let barrier = self.all_lanes();
        self.f[barrier].ordered = true;
        let (from, to) = (self.shared_word(from)?, self.map_address(to, Some(Space::Global))?);
        let (lane, offset) = (self.temp(), self.temp());
        let (number, amount) = (self.special_number("SR_LANEID"), self.imm(WORD));
        self.put(Op::S2R, &[], &[(Role::D, lane), (Role::S, number)]);
        self.shf(&SHF_L, offset, lane, amount, Operand::zero());
        let (base, word) = (self.temp(), self.temp());
        self.add(base, from, offset);
        let place = Place { window: Window::Shared, base, offset: 0 };
        self.load_word(word, SIZE_32, place, &Order::default())?;
        self.fence_for(Access::Map, Semantics::Release, scope)?;
        let sum = self.temp_pair();
        let words = self.words(sum);
        self.add_long(words, to, [offset, Operand::zero()], false);
        let row = OrderRow::of(self.target, Access::Map, Semantics::Relaxed, Some(scope), false);
        let order = Order { row: Some(row.ok_or(Refusal::NotBuilt)?), strong: true, ..Order::default() };
        let place = Place { window: Window::Global, base: sum, offset: 0 };
        self.swap_word(word, place, order);
        Ok(())
    }

    /// `tensormap.replace`
    pub fn replace_in_map(&mut self, inst: &ast::Instruction) -> Lowered {
        let field = inst.mods.map_field.ok_or(Refusal::NotBuilt)?.name();
        let constant = |at: usize| match inst.operands.get(at).map(|operand| &operand.kind) {
            Some(OperandKind::Constant(ast::Constant::Int { bits, .. })) => *bits,
            _ => 0,
        };
        let indexed = inst.operands.len() > 2;
        let number = constant(1);
        self.check_map_number(inst, field, number)?;
        let writes = map_writes(field, if indexed { number as u8 } else { 0 }, number);
        if writes.is_empty() {
            return Err(later(inst, &format!("{field} {number}")));
        }
        let place = self.place(&inst.operands[0], inst.mods.space)?;
        let words = match writes.iter().any(|(_, to)| *to == MapValue::Operand) {
            true => self.source_words(&inst.operands[inst.operands.len() - 1], inst.types[0])?,
            false => [Operand::zero(); 2],
        };
        for (row, to) in writes {
            let words = match to {
                MapValue::Constant(number) => [self.imm(number as u32), self.imm((number >> 32) as u32)],
                MapValue::Operand => words,
            };
            self.write_field(place, row, words)?;
        }
        Ok(())
    }

    /// Refuses a number that the target does not have, in ptxas's words.
    fn check_map_number(&self, inst: &ast::Instruction, field: &str, number: u64) -> Lowered {
        let high = match field {
            "elemtype" if number >= NARROW_TYPES && !self.has(Feature::TensorMapNarrowTypes) => NARROW_TYPES - 1,
            "swizzle_mode" if number == SWIZZLE_96 && !self.has(Feature::TensorMapSwizzle96) => SWIZZLE_96 - 1,
            _ => return Ok(()),
        };
        let text = format!(
            "Argument 1 of instruction 'tensormap.replace': value '{number}' expected to be in range [0..{high}] when \
             .{field} modifier is used."
        );
        Err(Refusal::At(inst.pos, text))
    }

    /// Sets a field of a map: all words of it that the field fills are stored, and a part of a word
    /// is changed in it.
    fn write_field(&mut self, place: Place, row: &MapField, words: [Operand; 2]) -> Lowered {
        let at = place.offset + i64::from(row.at / 32) * 4;
        let order = Order::default();
        let mut words = words;
        if row.shift != 0 {
            words[0] = self.shifted_down(words, row.shift.into());
        }
        if row.less != 0 {
            let (less, amount) = (self.temp(), self.imm(u32::from(row.less).wrapping_neg()));
            self.add(less, words[0], amount);
            words[0] = less;
        }
        let whole = usize::from(row.bits / 32);
        for (i, word) in words.into_iter().enumerate().take(whole) {
            let place = self.fitted(Place { offset: at + 4 * i as i64, ..place });
            self.store_word(word, SIZE_32, place, &order)?;
        }
        if whole != 0 {
            return Ok(());
        }
        let place = self.fitted(Place { offset: at, ..place });
        let (shift, mask) = (u32::from(row.at % 32), u32::MAX >> (32 - u32::from(row.bits)));
        let (old, moved, new) = (self.temp(), self.temp(), self.temp());
        let (amount, mask) = (self.imm(shift), self.imm(mask << shift));
        let word = self.in_reg_unless_zero(words[0]);
        self.shf(&SHF_L, moved, word, amount, Operand::zero());
        self.load_word(old, SIZE_32, place, &order)?;
        self.lop3(new, old, mask, moved, LUT_INSERT);
        self.store_word(new, SIZE_32, place, &order)
    }

    /// The word of a value of two from a bit on.
    fn shifted_down(&mut self, words: [Operand; 2], bit: u32) -> Operand {
        let (word, amount) = (self.temp(), self.imm(bit % 32));
        let [low, high] = words.each(|word| self.in_reg_unless_zero(word));
        match bit < 32 {
            true => self.shf(&SHF_R_U64, word, low, amount, high),
            false => self.shf(&SHF_R_U32_HI, word, Operand::zero(), amount, high),
        }
        word
    }
}

/// Whether the elements of a box are pixels of an image.
fn is_image(mode: Option<TensorMode>) -> bool {
    matches!(mode, Some(TensorMode::Im2col | TensorMode::Im2colW | TensorMode::Im2colW128))
}

/// The modifier of a mode other than `.tile`.
fn mode(mode: Option<TensorMode>) -> Option<M> {
    let value = match mode? {
        TensorMode::Tile => return None,
        TensorMode::TileGather4 => value::tma_mode::GATHER4,
        TensorMode::TileScatter4 => value::tma_mode::SCATTER4,
        TensorMode::Im2col | TensorMode::Im2colNoOffs => value::tma_mode::IM2COL,
        TensorMode::Im2colW => value::tma_mode::W,
        TensorMode::Im2colW128 => value::tma_mode::W128,
    };
    Some((Mod::TmaMode, value))
}
