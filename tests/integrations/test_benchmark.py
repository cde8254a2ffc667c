from sweetrl.integrations.benchmark import Benchmark


def test_a_closed_benchmark_opens_another_scorer() -> None:
    benchmark = Benchmark("mini-backend:test:1:3", "colleague")
    dialogue = benchmark.open(benchmark.tasks[0].id)
    dialogue.say_sync(f"I WANT TO ANSWER: {benchmark.tasks[0].secret.reference}")

    for _ in range(2):
        assert benchmark.score_sync(dialogue.episode).reward == 1.0
        benchmark.close()
