/* Runs the command of its arguments. As the first process of a container it has no handler for
 * SIGTERM, and so, like node, does not end at it. */
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    return child < 0 || waitpid(child, NULL, 0) != child;
}
