"""The models of torch.compile."""


def inductor_models(torch, device="cuda"):
    """name -> function that gives (callable, inputs, wants gradients)."""
    F = torch.nn.functional
    bf, f16 = torch.bfloat16, torch.float16

    def randn(*shape, dtype=torch.float32, scale=1.0, grad=False):
        return (torch.randn(shape, device=device) * scale).to(dtype).requires_grad_(grad)

    def gelu_mlp():
        w1, w2 = randn(4096, 1024, dtype=bf, scale=0.03), randn(1024, 4096, dtype=bf, scale=0.02)
        b1, b2 = randn(4096, dtype=bf), randn(1024, dtype=bf)
        return lambda x: F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2) + x, [randn(8192, 1024, dtype=bf)]

    def layernorm():
        w, b = randn(4096), randn(4096)
        return lambda x: F.layer_norm(x, (4096,), w, b), [randn(8192, 4096)]

    def softmax():
        mask = torch.tril(torch.ones(1024, 1024, dtype=torch.bool, device=device))
        return lambda x: torch.softmax((x * 0.125).masked_fill(~mask, float("-inf")).float(), -1).to(bf), \
            [randn(32, 1024, 1024, dtype=bf)]

    def rmsnorm():
        w = randn(4096, dtype=bf)

        def function(x, r):
            x = x + r
            y = x.float()
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(bf) * w, x

        return function, [randn(8192, 4096, dtype=bf), randn(8192, 4096, dtype=bf)]

    def transformer_block():
        d, heads = 1024, 16
        p = [randn(3 * d, d, dtype=bf, scale=0.03, grad=True), randn(d, d, dtype=bf, scale=0.03, grad=True),
             randn(4 * d, d, dtype=bf, scale=0.03, grad=True), randn(d, 4 * d, dtype=bf, scale=0.02, grad=True),
             randn(d, dtype=bf, grad=True), randn(d, dtype=bf, grad=True)]

        def function(x, qkv_w, out_w, up_w, down_w, n1, n2):
            b, t, _ = x.shape
            h = F.layer_norm(x, (d,), n1)
            q, k, v = (z.view(b, t, heads, d // heads).transpose(1, 2) for z in F.linear(h, qkv_w).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(a.transpose(1, 2).reshape(b, t, d), out_w)
            h = F.layer_norm(x, (d,), n2)
            return x + F.linear(F.gelu(F.linear(h, up_w), approximate="tanh"), down_w)

        return function, [randn(8, 1024, d, dtype=bf, grad=True)] + p

    def conv_bn_relu():
        w = randn(128, 64, 3, 3, dtype=f16, scale=0.05).to(memory_format=torch.channels_last)
        mean, var, g, b = randn(128), torch.rand(128, device=device) + 0.5, randn(128), randn(128)
        return lambda x: F.relu(F.batch_norm(F.conv2d(x, w, padding=1).float(), mean.clone(), var.clone(), g, b, True)), \
            [randn(32, 64, 56, 56, dtype=f16).to(memory_format=torch.channels_last)]

    def embedding_loss():
        table, head = randn(16000, 512, scale=0.5, grad=True), randn(16000, 512, dtype=bf, scale=0.05, grad=True)
        ids = torch.randint(0, 16000, (4096,), device=device)
        return lambda t, h, i: F.cross_entropy(F.linear(F.embedding(i, t).to(bf), h).float(), i.roll(1)), \
            [table, head, ids]

    def cumsum_gate():
        return lambda x, y: torch.cumsum(x * 0.01, -1) * torch.sigmoid(y), [randn(4096, 4096), randn(4096, 4096)]

    def argmax_topk():
        return lambda x: (x.argmax(-1), x.amax(-1), torch.topk(x, 8).values * 2, (x > 1).sum(-1)), [randn(8192, 2048)]

    def sort_small():
        return lambda x: tuple(torch.sort(x * 2.0, dim=-1, stable=True)), [randn(16384, 256)]

    def group_norm_silu():
        w, b = randn(320), randn(320)
        return lambda x: F.silu(F.group_norm(x, 32, w, b)) + x.mean((2, 3), keepdim=True), [randn(16, 320, 64, 64)]

    return {f.__name__: f for f in (gelu_mlp, layernorm, softmax, rmsnorm, cumsum_gate, argmax_topk, conv_bn_relu,
                                    embedding_loss, transformer_block, group_norm_silu, sort_small)}
