//! Random words of a form with legal values in every field.

use sassafras::tables::encoding::{ArgField, Form, Kind, SETS};
use sassafras::tables::{GenerationInfo, Target};

/// A small pseudo-random number generator (splitmix64), seeded so that a failure can be repeated.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// A word of a form, with a control field that nvdisasm accepts everywhere and no reuse bits.
pub fn random_word(form: &Form, target: &Target, random: &mut Random) -> u128 {
    let info = target.info().expect("a target with an encoder");
    let mut word = form.fixed.1 | form.must.1 | 0x000f_c400 << 96;
    word |= if random.below(3) == 0 { u128::from(random.below(16)) << 12 } else { 7 << 12 };
    if form.guard == sassafras::tables::encoding::GuardForm::None {
        word = word & !0xf000 | (form.fixed.1 | form.must.1) & 0xf000;
    }
    for field in form.mods.iter().filter(|f| f.only.is_none()) {
        let set = SETS[usize::from(field.set)];
        word |= field.bits.place(set[random.below(set.len() as u64) as usize].0.into());
    }
    for field in form.args {
        word |= operand(field, info, random);
    }
    // The lowest of the bits that the GPU refuses together.
    if form.is_refused(word) { word & !(form.apart & form.apart.wrapping_neg()) } else { word }
}

fn operand(field: &ArgField, info: &GenerationInfo, random: &mut Random) -> u128 {
    let ureg = |random: &mut Random| random.below(1 << info.ur_bits);
    let width = field.bits.width();
    let any = |random: &mut Random| if width >= 64 { random.next() } else { random.next() & ((1 << width) - 1) };
    let mut word = match field.kind {
        Kind::Literal | Kind::Word | Kind::Following => return 0,
        Kind::UReg => field.bits.place(ureg(random)),
        // Neither URZ nor the register before it, which has no successor for forms that print one.
        Kind::NonzeroUReg => field.bits.place(random.below((1 << info.ur_bits) - 2)),
        Kind::Bindless => field.bits.place(any(random)) | field.bank.place(ureg(random)),
        Kind::Nonzero => field.bits.place(random.below(255)),
        Kind::Scoreboard => field.bits.place(random.below(6)),
        Kind::Const => field.bits.place(any(random)) | field.bank.place(random.below(32)),
        // The special values of a field are rare among random ones.
        _ => match (random.below(4), field.elide, field.absent) {
            (0, Some((value, _)), _) | (0, None, Some((value, _))) => field.bits.place(value >> field.bits.shift),
            (1, ..) if field.kind == Kind::Reg => field.bits.place(255),
            _ => field.bits.place(any(random)),
        },
    };
    for bit in [field.neg, field.abs, field.complement, field.not] {
        if bit != 255 && random.below(3) == 0 {
            word |= 1 << bit;
        }
    }
    word
}
