//! Matrix multiply-accumulate, and matrices between shared memory and fragments: `mma mma.sp
//! wmma.mma ldmatrix stmatrix movmatrix`.
//!
//! Emits HMMA, IMMA, DMMA, BMMA and QMMA as `tables/lowering/matrix.ron` says, and LDSM, STSM,
//! MOVM. An mma reads and writes fresh register tuples, so a PTX register may be in several
//! fragments. Each instruction is preceded by a SYNCMASK of the full warp.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::mods::*;
use crate::ori::{InstId, Kind, Operand};
use crate::ptx::ast::{self, OperandKind, Part};
use crate::tables::lowering::{self, Product, Way};
use crate::tables::ptx::{Matrices, MatrixShape, Packed, Rounding, ScalarType, Space};
use crate::tables::{Mod, Op, Role, value};

/// Mask of all lanes of a warp.
const ALL_LANES: u64 = 0xffff_ffff;
const LOW_NIBBLES: u32 = 0x0f0f_0f0f;
const LOW_BITS: u32 = 0x0101_0101;
const NIBBLE_SIGNS: u32 = 0x0808_0808;
/// Factor that turns the sign bit of a nibble into ones in the upper nibble of its byte.
const SIGN_FILL: u32 = 0xf0 / 8;

/// Elements along k whose metadata for a row is in one lane.
const METADATA_UNITS: u32 = 16;

/// An mma to emit: its row, element types, modifiers, metadata, and operand lengths.
struct Fragments<'p> {
    product: &'p Product,
    types: [ScalarType; 2],
    mods: Vec<M>,
    /// Metadata and selector of a sparse mma.
    sparse: Option<[Operand; 2]>,
    /// Words of d, a and b of the instruction.
    lens: [usize; 3],
}

impl Builder<'_> {
    /// Requires the whole warp to be converged, at this very instruction, as `.aligned` says.
    pub fn all_lanes(&mut self) -> InstId {
        let mask = self.imm(ALL_LANES as u32);
        self.put(Op::SYNCMASK, &[ALL_AT_ONCE], &[(Role::A, mask)])
    }

    /// The one word of an operand that may stand in braces, in a register.
    pub fn one_word(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let words = self.fragment_words(operand, ScalarType::B32)?;
        Ok(self.in_reg(*words.first().ok_or(Refusal::NotBuilt)?))
    }

    /// The words of a fragment in order; an element of 64 bits has two.
    pub fn fragment_words(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Vec<Operand>> {
        let elements = match &operand.kind {
            OperandKind::Vector(list) => {
                list.iter().map(|one| self.source(one, ty)).collect::<Result<Vec<Operand>, _>>()?
            }
            OperandKind::Register(r) if r.part == Part::Whole => self.register(r.register).to_vec(),
            _ => vec![self.source(operand, ty)?],
        };
        let words = elements.into_iter().flat_map(|e| match ty.bits() {
            64 => self.words(e).to_vec(),
            _ => vec![e],
        });
        Ok(words.collect())
    }

    /// Copies words to adjacent fresh registers, padded with zeros to `len`; a single word is a
    /// plain register.
    pub fn fragment_of(&mut self, words: &[Operand], len: usize) -> Operand {
        let (vector, regs) = self.temp_vector(len);
        for (i, reg) in regs.iter().enumerate() {
            let word = words.get(i).copied().unwrap_or(Operand::zero());
            self.copy(*reg, word);
        }
        if len == 1 { regs[0] } else { vector }
    }

    /// Copies the registers of a fragment to the PTX registers of an operand.
    pub fn scatter(&mut self, operand: &ast::Operand, ty: ScalarType, from: &[Operand]) -> Lowered {
        let to = self.fragment_words(operand, ty)?;
        for (d, a) in to.into_iter().zip(from) {
            self.copy(d, *a);
        }
        Ok(())
    }

    /// `mma`, `mma.sp`, `wmma.mma`
    pub fn matrix_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let m = &inst.mods;
        if m.scale {
            return self.scaled_product(inst);
        }
        let shape = m.matrix_shape.ok_or(Refusal::NotBuilt)?;
        if shape == MatrixShape::M8n8k4 && inst.types.get(1) == Some(&ScalarType::F16) {
            return self.quarter_product(inst);
        }
        let first = inst.types[0];
        // With f16 and f32 mixed, the mma is computed in f32 between conversions.
        let mixed = inst.types.len() == 2 && first != inst.types[1];
        let types = if mixed { [ScalarType::F32; 2].as_slice() } else { &inst.types };
        let product = lowering::product(self.target, inst.op, shape, types, m.bit_op).ok_or(Refusal::NotBuilt)?;
        let words = if first.bits() == 64 { 2 } else { 1 };
        let word = if words == 2 { ScalarType::F64 } else { ScalarType::B32 };
        let whole = first == ScalarType::S32;
        if m.saturate_finite && !whole {
            return Err(Refusal::NotBuilt);
        }
        let mut mods: Vec<M> = product.mods.to_vec();
        mods.extend(match m.rounding {
            Some(Rounding::Rz) => Some(RZ),
            Some(Rounding::Rm) => Some(RM),
            Some(Rounding::Rp) => Some(RP),
            _ => None,
        });
        let split = product.way.splits();
        if m.saturate_finite && !split {
            mods.push(SAT);
        }
        let mut parts = Vec::new();
        for operand in &inst.operands[1..4] {
            parts.push(self.fragment_words(operand, word)?);
        }
        if mixed {
            parts[2] = self.as_singles(&parts[2], inst.types[1]);
        }
        let sparse = match inst.operands.get(4..6) {
            None => None,
            Some([metadata, selector]) => {
                let metadata = self.one_word(metadata)?;
                let selector = self.constant_operand(selector)?;
                Some([metadata, self.literal(selector as i64)])
            }
            Some(_) => return Err(Refusal::NotBuilt),
        };
        let types = [1, 2].each(|i| inst.types.get(i).copied().unwrap_or(ScalarType::F16));
        let lens = product.frag.each(|n| usize::from(n) * words);
        self.all_lanes();
        let mut sparse = sparse;
        if let (true, Some([metadata, selector])) = (product.way.orders(), sparse) {
            // Metadata counts 4-bit elements in pairs.
            let unit = types[0].bits().max(8);
            let elements = (unit, shape_k(shape) * types[0].bits() / unit / METADATA_UNITS);
            let number = self.constant(selector).unwrap_or(0) as u32;
            let (ordered, metadata) = self.in_order(&parts[0], metadata, number, elements)?;
            parts[0] = ordered;
            sparse = Some([metadata, selector]);
        }
        if let (Way::SparseBytes | Way::OrderBytes, Some([metadata, selector])) = (product.way, sparse) {
            let ([even, odd], metadata) = self.sparse_groups(&parts[1], metadata)?;
            parts[1] = [even, odd].concat();
            sparse = Some([metadata, selector]);
        }
        let f = Fragments { product, types, mods, sparse, lens };
        let [a, b, c] = [&parts[0], &parts[1], &parts[2]];
        let late = m.saturate_finite && split;
        let zero = vec![Operand::zero(); c.len()];
        let mut result = self.steps(&f, [a, b, if late { &zero } else { c }], words);
        if late {
            result = result.iter().zip(c).map(|(p, c)| self.saturated(*p, *c)).collect();
        }
        if mixed {
            result = self.rounded_to(result, first)?;
        }
        self.scatter(&inst.operands[0], word, &result)
    }

    /// The sum of two words, saturated.
    fn saturated(&mut self, a: Operand, b: Operand) -> Operand {
        let b = self.in_reg(b);
        let (sum, over, sign, limit, p, d) =
            (self.temp(), self.temp(), self.temp(), self.temp(), self.temp_pred(), self.temp());
        self.add(sum, a, b);
        // (a ^ sum) & (b ^ sum): negative if both operands differ in sign from the sum.
        self.lop3(over, a, b, sum, (0xf0 ^ 0xaa) & (0xcc ^ 0xaa));
        self.sign_word(sign, b);
        let most = self.imm(i32::MAX as u32);
        self.lop3(limit, sign, most, Operand::zero(), 0xf0 ^ 0xcc);
        self.isetp(p, &[LT, AND], over, Operand::zero());
        self.select(d, limit, sum, p);
        d
    }

    /// Emits all steps of an mma; returns the words of d.
    fn steps(&mut self, f: &Fragments, [a, b, c]: [&[Operand]; 3], words: usize) -> Vec<Operand> {
        let mut result: Vec<Operand> = c.to_vec();
        let [first, second] = if f.product.swap { [b, a] } else { [a, b] };
        let slice = |of: &[Operand], start: usize, len: usize| -> Vec<Operand> {
            of.iter().skip(start).take(len).copied().collect()
        };
        for step in f.product.steps {
            let [d0, a0, b0] = step.each(|n| usize::from(n) * words);
            let (a, b) = (slice(first, a0, f.lens[1]), slice(second, b0, f.lens[2]));
            let mut sum = slice(&result, d0, f.lens[0]);
            for (number, (a, b)) in self.ways(f, &a, &b).into_iter().enumerate() {
                sum = self.one_product(f, number, [&a, &b, &sum]);
            }
            let end = result.len().min(d0 + f.lens[0]);
            result[d0..end].copy_from_slice(&sum[..end - d0]);
        }
        result
    }

    /// Emits one instruction, number `number` of its step.
    fn one_product(&mut self, f: &Fragments, number: usize, [a, b, c]: [&[Operand]; 3]) -> Vec<Operand> {
        let (a, b) = (self.fragment_of(a, f.lens[1]), self.fragment_of(b, f.lens[2]));
        let c = self.fragment_of(c, f.lens[0]);
        let (d, regs) = self.temp_vector(f.lens[0]);
        let mut args = vec![(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)];
        if let Some([metadata, mut selector]) = f.sparse {
            if matches!(f.product.way, Way::SparseBytes | Way::OrderBytes) {
                selector = self.literal(number as i64);
            }
            args.extend([(Role::E, metadata), (Role::Id, selector)]);
        }
        self.put(f.product.inst, &f.mods, &args);
        regs
    }

    /// The A and B operands of each instruction of one step.
    fn ways(&mut self, f: &Fragments, a: &[Operand], b: &[Operand]) -> Vec<(Vec<Operand>, Vec<Operand>)> {
        let [ta, tb] = f.types;
        match f.product.way {
            Way::Direct | Way::Order => vec![(a.to_vec(), b.to_vec())],
            Way::Bytes => [false, true].each(|high| (self.halves_of(a, high, ta), self.halves_of(b, high, tb))).into(),
            Way::SparseBytes | Way::OrderBytes => {
                let halves = b.chunks(b.len().div_ceil(2).max(1)).map(|half| self.both_halves(half, tb));
                let halves: Vec<Vec<Operand>> = halves.collect();
                let factors = [false, true].each(|high| self.halves_of(a, high, ta));
                factors.into_iter().zip(halves).collect()
            }
            Way::Nibbles | Way::OrderNibbles => {
                [0, 4].each(|by| (self.nibbles(a, by, ta), self.nibbles(b, by, tb))).into()
            }
            Way::Bits => self.bit_positions(a, b),
            Way::Differ => self.differences(a, b).into(),
            Way::DifferBits => {
                let pairs = self.differences(a, b);
                pairs.iter().flat_map(|(a, b)| self.bit_positions(a, b)).collect()
            }
        }
    }

    /// `(a, not b)` and `(not a, b)`: together they cover the bits in which the operands differ.
    fn differences(&mut self, a: &[Operand], b: &[Operand]) -> [(Vec<Operand>, Vec<Operand>); 2] {
        let (not_a, not_b) = (self.complements(a), self.complements(b));
        [(a.to_vec(), not_b), (not_a, b.to_vec())]
    }

    fn complements(&mut self, words: &[Operand]) -> Vec<Operand> {
        let one = |b: &mut Self, word: &Operand| {
            let (word, d) = (b.in_reg(*word), b.temp());
            b.lop3(d, word, Operand::zero(), Operand::zero(), !0xf0);
            d
        };
        words.iter().map(|word| one(self, word)).collect()
    }

    fn bit_positions(&mut self, a: &[Operand], b: &[Operand]) -> Vec<(Vec<Operand>, Vec<Operand>)> {
        (0..8).map(|by| (self.masked(a, by, LOW_BITS), self.masked(b, by, LOW_BITS))).collect()
    }

    /// Shifts words right and masks them.
    fn masked(&mut self, words: &[Operand], by: u32, mask: u32) -> Vec<Operand> {
        let one = |b: &mut Self, word: &Operand| {
            let mut word = b.in_reg(*word);
            if by != 0 {
                let (shifted, amount) = (b.temp(), b.imm(by));
                b.shf(&SHF_R_U32_HI, shifted, Operand::zero(), amount, word);
                word = shifted;
            }
            let (d, mask) = (b.temp(), b.imm(mask));
            b.and(d, word, mask);
            d
        };
        words.iter().map(|word| one(self, word)).collect()
    }

    /// The low (or high) two 8-bit floats of each word, as f16.
    fn halves_of(&mut self, words: &[Operand], high: bool, ty: ScalarType) -> Vec<Operand> {
        let Some(from) = lowering::narrow(ty).map(|n| n.read) else { return words.to_vec() };
        let half = (Mod::Byte, if high { value::byte::H1 } else { value::byte::NONE });
        let one = |b: &mut Self, word: &Operand| {
            let (word, d) = (b.in_reg(*word), b.temp());
            b.put(Op::F2FP, &[UNPACK_F16, from, UNPACK, half], &[(Role::D, d), (Role::A, word)]);
            d
        };
        words.iter().map(|word| one(self, word)).collect()
    }

    /// All 8-bit floats of each word as f16, two words for each.
    fn both_halves(&mut self, words: &[Operand], ty: ScalarType) -> Vec<Operand> {
        let one = |b: &mut Self, word: &Operand| [false, true].each(|high| b.halves_of(&[*word], high, ty)).concat();
        words.iter().flat_map(|word| one(self, word)).collect()
    }

    /// Every second nibble as a byte, extended by the sign of its type.
    fn nibbles(&mut self, words: &[Operand], by: u32, ty: ScalarType) -> Vec<Operand> {
        let low = self.masked(words, by, LOW_NIBBLES);
        if ty != ScalarType::S4 {
            return low;
        }
        let signs = self.masked(&low, 0, NIBBLE_SIGNS);
        let fill = |b: &mut Self, (low, sign): (Operand, Operand)| {
            let (d, times) = (b.temp(), b.imm(SIGN_FILL));
            b.imad(d, sign, times, low);
            d
        };
        low.into_iter().zip(signs).map(|pair| fill(self, pair)).collect()
    }

    /// `ldmatrix`
    pub fn load_matrix(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = matrix_mods(inst)?;
        let place = self.place(&inst.operands[1], Some(Space::Shared))?;
        let words = self.fragment_words(&inst.operands[0], ScalarType::B32)?;
        self.all_lanes();
        let (vector, regs) = self.temp_vector(words.len());
        let d = if words.len() == 1 { regs[0] } else { vector };
        let off = self.literal(place.offset);
        self.put(Op::LDSM, &mods, &[(Role::D, d), (Role::A, place.base), (Role::Off, off)]);
        self.scatter(&inst.operands[0], ScalarType::B32, &regs)
    }

    /// `stmatrix`
    pub fn store_matrix(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = matrix_mods(inst)?;
        let place = self.place(&inst.operands[0], Some(Space::Shared))?;
        let words = self.fragment_words(&inst.operands[1], ScalarType::B32)?;
        self.all_lanes();
        let b = self.fragment_of(&words, words.len());
        let off = self.literal(place.offset);
        self.put(Op::STSM, &mods, &[(Role::A, place.base), (Role::Off, off), (Role::B, b)]);
        Ok(())
    }

    /// `movmatrix`
    pub fn move_matrix(&mut self, inst: &ast::Instruction) -> Lowered {
        let d = self.dest(&inst.operands[0])?;
        let a = self.source_reg(&inst.operands[1], ScalarType::B32)?;
        let turned = self.turn(a);
        self.copy(d, turned);
        Ok(())
    }

    /// The first word of an operand, which may be a pair.
    pub fn low_word(&mut self, value: Operand) -> Operand {
        match value.kind() {
            Kind::Vector(_) => self.words(value)[0],
            _ => value,
        }
    }
}

/// Format, layout and count modifiers of `ldmatrix` and `stmatrix`.
fn matrix_mods(inst: &ast::Instruction) -> Lowered<Vec<M>> {
    let m = &inst.mods;
    let layout = match (m.matrix_shape, m.trans) {
        (Some(MatrixShape::M8n8), false) => value::mlayout::M88,
        (Some(MatrixShape::M8n8), true) => value::mlayout::MT88,
        (Some(MatrixShape::M16n16), _) => value::mlayout::MT1616,
        (Some(MatrixShape::M8n16), _) => value::mlayout::M816,
        (Some(MatrixShape::M16n8), _) => value::mlayout::MT168,
        _ => return Err(Refusal::NotBuilt),
    };
    let format = match (m.packed, inst.types.first()) {
        (Some(Packed::B6x16P32), _) => value::mform::U6X16P32TO8,
        (Some(Packed::B4x16P64), _) => value::mform::U4X16P64TO8,
        (None, Some(ScalarType::B8)) => value::mform::_8,
        _ => value::mform::_16,
    };
    let count = match m.matrices {
        Some(Matrices::X2) => value::mcount::_2,
        Some(Matrices::X4) => value::mcount::_4,
        _ => value::mcount::NONE,
    };
    Ok(vec![(Mod::Mform, format), (Mod::Mlayout, layout), (Mod::Mcount, count)])
}

/// Size of a shape along k.
fn shape_k(shape: MatrixShape) -> u32 {
    shape.name().rsplit('k').next().and_then(|k| k.parse().ok()).unwrap_or(0)
}
