//! Random functions through the register allocator, each verified by its checker.
//!
//! Each seed gives a function: a random graph of blocks with loops, over a few dozen variables of
//! the general, predicate and both uniform files, with register tuples of 1 to 8, guards, copies,
//! constants and calls with fixed registers. It goes into and out of SSA form and is allocated with
//! a random, mostly small number of registers. The allocator must not fail (no instruction here
//! needs more than 20 registers), its checker must find no error, no register above the limit may
//! be used, and the checker must report a corrupted allocation. `SASSAFRAS_FUZZ` is the number of
//! functions.

use sassafras::alloc::{self, check};
use sassafras::analysis::calls_apart::branches_before_calls;
use sassafras::analysis::{Loops, PassCx};
use sassafras::ori::cfg::Cfg;
use sassafras::ori::liveness::Liveness;
use sassafras::ori::{Block, Convention, File, Function, Operand, VReg, destruct, ssa, text};
use sassafras::pass::ENCODER;
use sassafras::tables::{Mod, Op, Role, Target, value};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn one<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

struct Maker {
    random: Random,
    f: Function,
    general: Vec<VReg>,
    predicates: Vec<VReg>,
    uniform: Vec<VReg>,
    uniform_predicates: Vec<VReg>,
    calls: bool,
}

fn function(seed: u64) -> Function {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut f = Function::new("k", Target::by_name("sm_90").unwrap());
    let count = 8 + random.below(60);
    let general: Vec<VReg> = (0..count).map(|_| f.new_reg(File::R)).collect();
    let predicates: Vec<VReg> = (0..2 + random.below(12)).map(|_| f.new_reg(File::P)).collect();
    let calls = random.below(3) == 0;
    let uniform: Vec<VReg> = (0..2 + random.below(90)).map(|_| f.new_reg(File::UR)).collect();
    let uniform_predicates: Vec<VReg> = (0..2 + random.below(20)).map(|_| f.new_reg(File::UP)).collect();
    let mut maker = Maker { random, f, general, predicates, uniform, uniform_predicates, calls };
    maker.body();
    maker.f
}

impl Maker {
    fn body(&mut self) {
        let blocks: Vec<Block> = (0..3 + self.random.below(10)).map(|_| self.f.new_block()).collect();
        for reg in self.general.clone() {
            self.define(blocks[0], reg);
        }
        for reg in self.predicates.clone() {
            self.compare(blocks[0], reg);
        }
        for reg in self.uniform.clone() {
            let number = self.f.imm(u64::from(reg.as_u32()));
            self.put(blocks[0], Op::UMOV, &[(Role::D, reg.into()), (Role::A, number)]);
        }
        for reg in self.uniform_predicates.clone() {
            self.compare_uniform(blocks[0], reg);
        }
        for (i, block) in blocks.iter().enumerate() {
            for _ in 0..self.random.below(25) {
                self.instruction(*block);
            }
            if i + 1 == blocks.len() {
                self.put(*block, Op::EXIT, &[]);
                continue;
            }
            if self.random.below(3) > 0 {
                let (target, p) = (self.random.one(&blocks[1..]), self.random.one(&self.predicates));
                self.put(*block, Op::BRA, &[(Role::Target, Operand::label(target))]);
                let last = *self.f[*block].last().unwrap();
                self.f[last].guard = Operand::reg(p);
            }
            self.put(*block, Op::BRA, &[(Role::Target, Operand::label(blocks[i + 1]))]);
        }
    }

    fn put(&mut self, block: Block, op: Op, args: &[(Role, Operand)]) {
        let inst = self.f.make(op);
        args.iter().for_each(|(role, operand)| self.f.set_arg(inst, *role, *operand));
        self.f.append(block, inst);
    }

    fn any(&mut self) -> Operand {
        Operand::reg(self.random.one(&self.general))
    }

    fn define(&mut self, block: Block, reg: VReg) {
        if self.random.below(2) == 0 {
            let number = self.random.below(1000) as u64;
            let number = self.f.imm(number);
            self.put(block, Op::MOV, &[(Role::D, reg.into()), (Role::A, number)]);
        } else {
            let from = Operand::constant(0, 0x210 + 4 * self.random.below(16) as u16);
            self.put(block, Op::LDC, &[(Role::D, reg.into()), (Role::C, from)]);
        }
    }

    fn compare(&mut self, block: Block, p: VReg) {
        let (a, b) = (self.any(), self.any());
        self.put(block, Op::ISETP, &[(Role::Pu, p.into()), (Role::A, a), (Role::B, b)]);
    }

    fn compare_uniform(&mut self, block: Block, p: VReg) {
        let (a, b) = (self.random.one(&self.uniform), self.random.one(&self.uniform));
        self.put(block, Op::UISETP, &[(Role::Pu, p.into()), (Role::A, a.into()), (Role::B, b.into())]);
    }

    fn uniform(&mut self, block: Block) {
        let [d, a, b] = [(); 3].map(|()| Operand::reg(self.random.one(&self.uniform)));
        let p = self.random.one(&self.uniform_predicates);
        match self.random.below(4) {
            0 => self.compare_uniform(block, p),
            1 => self.put(block, Op::UMOV, &[(Role::D, d), (Role::A, a)]),
            _ => self.put(block, Op::USEL, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, p.into())]),
        }
    }

    fn vector(&mut self, len: usize) -> Operand {
        let regs: Vec<VReg> = (0..len).map(|_| self.random.one(&self.general)).collect();
        Operand::vector(self.f.vector(&regs))
    }

    /// A tuple of distinct registers for a result.
    fn result(&mut self, len: usize) -> Operand {
        let mut regs = Vec::new();
        while regs.len() < len {
            let reg = self.random.one(&self.general);
            if !regs.contains(&reg) {
                regs.push(reg);
            }
        }
        Operand::vector(self.f.vector(&regs))
    }

    fn instruction(&mut self, block: Block) {
        let (d, a, b, c) = (self.any(), self.any(), self.any(), self.any());
        let zero = self.f.imm(0);
        let p = self.random.one(&self.predicates);
        match self.random.below(14) {
            0..=3 => self.put(block, Op::IADD3, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]),
            4 => self.define(block, d.as_reg().unwrap()),
            5 => self.compare(block, p),
            6 => self.put(block, Op::SEL, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, p.into())]),
            7 => self.put(block, Op::COPY, &[(Role::D, d), (Role::A, a)]),
            8 => {
                let (d, c) = (self.result(2), self.vector(2));
                self.put(block, Op::IMAD_WIDE, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
            }
            9 => {
                let d = self.result(4);
                self.put(block, Op::LDS, &[(Role::D, d), (Role::A, a), (Role::Off, zero)]);
                self.size(block, value::size::_128);
            }
            10 => {
                let b = self.vector(4);
                self.put(block, Op::STS, &[(Role::B, b), (Role::A, a), (Role::Off, zero)]);
                self.size(block, value::size::_128);
            }
            11 | 12 => self.uniform(block),
            _ if self.calls => self.call(block),
            _ => self.put(block, Op::STS, &[(Role::B, b), (Role::A, a), (Role::Off, zero)]),
        }
        let last = *self.f[block].last().unwrap();
        let guarded = !matches!(self.f[last].op, Op::COPY | Op::CALL) && self.random.below(5) == 0;
        if guarded {
            let p = Operand::reg(self.random.one(&self.predicates));
            self.f[last].guard = if self.random.below(2) == 0 { p } else { p.inverted() };
        }
    }

    fn size(&mut self, block: Block, size: u8) {
        let last = *self.f[block].last().unwrap();
        self.f[last].mods.set(Mod::Size, size);
    }

    fn call(&mut self, block: Block) {
        let fixed = |f: &mut Function, n: u16| f.new_fixed(File::R, n);
        let args: Vec<VReg> = (4..4 + self.random.below(6) as u16).map(|n| fixed(&mut self.f, n)).collect();
        let back = [fixed(&mut self.f, 20), fixed(&mut self.f, 21)];
        let result = fixed(&mut self.f, 4);
        for arg in &args {
            let a = self.any();
            self.put(block, Op::COPY, &[(Role::D, (*arg).into()), (Role::A, a)]);
        }
        for reg in back {
            self.define(block, reg);
        }
        let to = Operand::vector(self.f.vector(&back));
        let inst = self.f.make(Op::CALL);
        self.f.set_arg(inst, Role::A, to);
        let args: Vec<Operand> = args.into_iter().map(Operand::reg).collect();
        self.f.set_extras(inst, &args, &[result.into()]);
        self.f.append(block, inst);
        let d = self.any();
        self.put(block, Op::COPY, &[(Role::D, d), (Role::A, result.into())]);
    }
}

#[test]
fn random_functions_keep_their_values() {
    let count: u64 = std::env::var("SASSAFRAS_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut spilled = 0;
    for seed in 0..count {
        let mut f = function(seed);
        let has_calls = f.regs().values().any(|r| r.fixed.is_some());
        if seed % 4 == 3 && !has_calls {
            f.attributes_mut().convention = Convention::Device;
        }
        ssa::construct(&mut f);
        destruct::destruct(&mut f);
        let limit = [24, 26, 32, 40, 255][seed as usize % 5];
        f.attributes_mut().max_registers = Some(limit);
        let before = text::print(&f);
        if let Err(message) = alloc::run(&mut PassCx::new(&mut f, ENCODER)) {
            panic!("seed {seed}, {limit} registers: {message}\n{before}");
        }
        let highest = alloc::general_registers(&f).last().copied().unwrap_or(0);
        assert!(u32::from(highest) + 1 + alloc::EXTRA_REGISTERS <= limit, "seed {seed}: R{highest} of {limit}");
        spilled += u64::from(f.attributes().spill_loads > 0);
    }
    assert!(count < 100 || spilled > count / 10, "only {spilled} of {count} functions spilled");
}

/// Corrupts allocations by moving one register onto another that is live at the same place. The
/// checker must report each, unless both hold the same value there.
#[test]
fn checker_finds_a_spoilt_allocation() {
    let (mut found, mut tried) = (0, 0);
    let mut missed = Vec::new();
    for seed in 0..40 {
        let mut f = function(seed);
        ssa::construct(&mut f);
        destruct::destruct(&mut f);
        let before = f.clone();
        let cfg = Cfg::new(&f);
        let loops = Loops::new(&cfg, &cfg.dominators());
        let gone = alloc::place(&mut f, &cfg, &loops, None, &[]).unwrap();
        assert_eq!(check::check(&before, &f, &gone, &[]), Vec::<String>::new(), "seed {seed}");
        let mut random = Random(seed + 99);
        let meeting = meeting(&f);
        for _ in 0..meeting.len().min(12) {
            let (one, two) = random.one(&meeting);
            if always_equal(&f, one, two) {
                continue;
            }
            let (kept, other) = (f[one].phys, f[two].phys);
            f[one].phys = other;
            tried += 1;
            if check::check(&before, &f, &gone, &[]).is_empty() {
                missed.push(format!("seed {seed}: {one} onto {two}"));
            } else {
                found += 1;
            }
            f[one].phys = kept;
        }
    }
    assert!(tried > 200, "only {tried} pairs");
    assert!(missed.is_empty(), "{found} of {tried}; not {}", missed.join(", "));
}

/// Some lanes call the driver; the others read a uniform value that they share, behind a branch.
const APART: &str = "function k sm_90
fixed r18=20 r19=21
b0:
  S2R d=r1 s=s33
  ULDC d=u2 c=c[0][0x210]
  ISETP{cmp=LT} pu=p5 a=r1 b=0x10
  @p5 BRA target=b2
  BRA target=b1
b1:
  MOV d=r18 a=0x300
  MOV d=r19 a=0x0
  CALL a={r18,r19} target=$.driver
  EXIT
b2:
  IMAD d=r3 a=r1 b=u2 c=Z
  STS a=Z off=0x0 b=r3
  EXIT
";

/// No path leads from the call to where the value is read: only a rule about branches keeps it.
#[test]
fn checker_finds_what_a_call_of_other_lanes_may_change() {
    let parsed = text::parse(APART).unwrap();
    let cfg = Cfg::new(&parsed);
    let loops = Loops::new(&cfg, &cfg.dominators());
    let varying = PassCx::new(&mut parsed.clone(), ENCODER).divergence();
    let branches = branches_before_calls(&parsed, &cfg, &varying);
    assert_eq!(branches.len(), 1);
    for (given, errors) in [(&branches[..], 0), (&[], 1)] {
        let mut f = parsed.clone();
        let gone = alloc::place(&mut f, &cfg, &loops, None, given).unwrap();
        let found = check::check(&parsed, &f, &gone, &branches);
        assert_eq!(found.len(), errors, "{found:?}");
    }
}

/// Whether one of two registers is only a copy of the other, each defined once.
fn always_equal(f: &Function, one: VReg, two: VReg) -> bool {
    let (mut written, mut copied) = (0, false);
    for inst in f.layout().iter().flat_map(|b| &f[*b]) {
        f.for_each_def(*inst, |reg| written += u32::from(reg == one || reg == two));
        let pair = (f.arg(*inst, Role::D).as_reg(), f.arg(*inst, Role::A).as_reg());
        copied |= f[*inst].op == Op::COPY && [(Some(one), Some(two)), (Some(two), Some(one))].contains(&pair);
    }
    written == 2 && copied
}

/// Pairs of general registers that are live at the start of the same block, in different locations.
fn meeting(f: &Function) -> Vec<(VReg, VReg)> {
    let live = Liveness::at_start(f, &Cfg::new(f));
    let free = |r: &VReg| f[*r].phys.is_some_and(|p| p > 1) && f[*r].file == File::R;
    let regs: Vec<VReg> = f.regs().keys().filter(free).collect();
    let mut pairs = Vec::new();
    for block in f.layout() {
        let here: Vec<VReg> = regs.iter().copied().filter(|r| live.contains(*block, *r)).collect();
        let all = here.iter().flat_map(|one| here.iter().map(move |two| (*one, *two)));
        pairs.extend(all.filter(|(one, two)| f[*one].phys != f[*two].phys));
    }
    pairs
}

/// A value is spilled to the frame; before its reload the program may move the stack pointer, and
/// may restore it.
fn waiting(moves: bool, back: bool) -> Vec<String> {
    let mut f = Function::new("k", Target::by_name("sm_90").unwrap());
    let block = f.new_block();
    let (sp, value) = (f.stack_register(), f.new_reg(File::R));
    let put = |f: &mut Function, op, args: &[(Role, Operand)]| {
        let inst = f.make(op);
        args.iter().for_each(|(role, operand)| f.set_arg(inst, *role, *operand));
        f.append(block, inst);
    };
    let (seven, below, home, saved) = (f.imm(7), f.imm(0xffff_fff0), f.imm(8), f.imm(0));
    put(&mut f, Op::MOV, &[(Role::D, value.into()), (Role::A, seven)]);
    if moves {
        put(&mut f, Op::IADD3, &[(Role::D, sp.into()), (Role::A, sp.into()), (Role::B, below)]);
    }
    if back {
        put(&mut f, Op::LDL, &[(Role::D, sp.into()), (Role::A, sp.into()), (Role::Off, saved)]);
    }
    put(&mut f, Op::STG, &[(Role::A, value.into()), (Role::B, value.into()), (Role::Off, saved)]);
    put(&mut f, Op::EXIT, &[]);
    let before = f.clone();
    f[value].phys = Some(4);
    (f.attributes_mut().local_bytes, f.attributes_mut().frame_bytes) = (8, 16);
    put(&mut f, Op::STL, &[(Role::A, sp.into()), (Role::B, value.into()), (Role::Off, home)]);
    put(&mut f, Op::LDL, &[(Role::D, value.into()), (Role::A, sp.into()), (Role::Off, home)]);
    let mut order = f[block].clone();
    let (load, store) = (order.pop().unwrap(), order.pop().unwrap());
    order.insert(1, store);
    order.insert(order.len() - 2, load);
    f[block] = order;
    check::check(&before, &f, &Default::default(), &[])
}

/// The frame is out of reach while the program has moved the stack pointer.
#[test]
fn checker_follows_the_stack_pointer() {
    assert_eq!(waiting(false, false), Vec::<String>::new());
    assert_eq!(waiting(true, true), Vec::<String>::new());
    let found = waiting(true, false);
    assert!(found.len() == 1 && found[0].contains("reaches for the frame"), "{found:?}");
}
